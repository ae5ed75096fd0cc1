// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/base/deadline.h"
#include "lockstep/transport/tcp/limits.h"

#include "tests/transport/tcp_world.h"

namespace lockstep::transport {
namespace {

using namespace std::chrono_literals;

constexpr StreamId kFailed = 7;

// Offers small messages on all streams, far more than the system buffers, and writes until nothing moves.
void fill_socket(Endpoint& from, Rank to, const std::vector<std::byte>& payload) {
  const std::size_t each = tcp::kEagerBudget / (payload.size() + tcp::kEagerOverhead);
  for (StreamId stream = 0; stream < kMaxStreams; ++stream) {
    for (std::size_t i = 0; i < each; ++i) from.channel(to, stream).send({1, 1}, payload);
  }
  const auto written = [&] {
    std::uint64_t messages = 0;
    for (StreamId stream = 0; stream < kMaxStreams; ++stream)
      messages += from.channel(to, stream).sends_done();
    return messages;
  };
  // The system goes on moving bytes for a while after the first refusal: it delays acknowledgements.
  std::uint64_t before = 0;
  for (int quiet = 0; quiet < 100; ++quiet) {
    for (int i = 0; i < 200; ++i) from.channel(to, 0).pump();
    if (written() != before) quiet = 0;
    before = written();
    std::this_thread::sleep_for(1ms);
  }
  ASSERT_LT(before, each * kMaxStreams) << "the system takes everything";
}

// After a failure nobody may drive for long: the report must leave with the call, though the socket is full.
TEST(TcpFailure, ReachesAPeerThatReadsThroughAFullSocket) {
  const std::vector<std::byte> payload(tcp::kEagerBytes);
  auto world = make_tcp_world(2, 1);
  fill_socket(*world[0], 1, payload);
  std::optional<std::string> heard;
  std::jthread reader([&] {
    std::this_thread::sleep_for(20ms);
    const Deadline deadline = Deadline::after(10s);
    while (!heard && !deadline.passed()) heard = world[1]->failure_of(0, kFailed);
  });
  world[0]->fail(kFailed, "no more paper");
  reader.join();
  EXPECT_EQ(heard, "no more paper");
  world[1].reset();  // so that rank 0 does not wait for it when it leaves
}

TEST(TcpFailure, DoesNotWaitForeverForAPeerThatDoesNotRead) {
  const std::vector<std::byte> payload(tcp::kEagerBytes);
  auto world = make_tcp_world(3, 1);
  fill_socket(*world[0], 1, payload);
  world[0]->fail(kFailed, "no more paper");
  EXPECT_EQ(world[2]->failure_of(0, kFailed), "no more paper") << "the others are told meanwhile";
  world[1].reset();
}

TEST(TcpEndpoint, KnowsWhoSharesItsHost) {
  const auto world = make_tcp_world(2, 1);
  EXPECT_TRUE(world[0]->shares_host(1));
  EXPECT_TRUE(world[1]->shares_host(0));
}

}  // namespace
}  // namespace lockstep::transport
