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

// After a failure nobody may drive for long: the report must leave now, though the socket is full.
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
  world[0]->pass_on_failures(Deadline::after(10s));
  reader.join();
  EXPECT_EQ(heard, "no more paper");
  world[1].reset();  // so that rank 0 does not wait for it when it leaves
}

TEST(TcpFailure, DoesNotWaitForeverForAPeerThatDoesNotRead) {
  const std::vector<std::byte> payload(tcp::kEagerBytes);
  auto world = make_tcp_world(3, 1);
  fill_socket(*world[0], 1, payload);
  world[0]->fail(kFailed, "no more paper");
  world[0]->pass_on_failures(Deadline::after(50ms));
  EXPECT_EQ(world[2]->failure_of(0, kFailed), "no more paper") << "the others are told meanwhile";
  world[1].reset();
}

TEST(TcpEndpoint, KnowsWhoSharesItsHost) {
  const auto world = make_tcp_world(2, 1);
  EXPECT_TRUE(world[0]->shares_host(1));
  EXPECT_TRUE(world[1]->shares_host(0));
}

// A peer that does not read must not take the time that another one needs.
TEST(TcpFailure, ReachesEveryPeerThatReadsWhenTheRankLeaves) {
  const std::vector<std::byte> payload(tcp::kEagerBytes);
  auto world = make_tcp_world(3, 1);
  for (const Rank peer : {1, 2}) fill_socket(*world[0], peer, payload);
  world[0]->fail(kFailed, "no more paper");
  std::optional<std::string> heard;
  std::jthread reader([&] {
    std::this_thread::sleep_for(20ms);
    const Deadline deadline = Deadline::after(10s);
    while (!heard && !deadline.passed()) heard = world[2]->failure_of(0, kFailed);
  });
  world[0].reset();
  reader.join();
  EXPECT_EQ(heard, "no more paper");
}

}  // namespace
}  // namespace lockstep::transport
