// SPDX-License-Identifier: Apache-2.0
#include "tests/transport/conformance.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include <poll.h>

#include "lockstep/base/deadline.h"

namespace lockstep::transport {
namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 30s;
constexpr StreamId kLingerStreams = 4;

std::vector<Channel*> lingering_channels(Endpoint& endpoint) {
  std::vector<Channel*> channels;
  for (Rank peer = 0; peer < endpoint.world(); ++peer) {
    if (peer == endpoint.rank()) continue;
    for (StreamId stream = 0; stream < kLingerStreams; ++stream)
      channels.push_back(&endpoint.channel(peer, stream));
  }
  return channels;
}

// A rank that has finished may still have to pass bytes on that its peers wait for.
void linger(Endpoint& endpoint, const std::atomic<int>& running) {
  const std::vector<Channel*> channels = lingering_channels(endpoint);
  while (running.load() > 0) {
    bool moved = false;
    for (Channel* channel : channels) moved |= channel->pump();
    if (!moved) std::this_thread::sleep_for(1ms);
  }
}

void report(Rank rank, const std::string& what) {
  ADD_FAILURE() << "rank " << rank << ": " << what;
}

}  // namespace

std::string transport_name(const testing::TestParamInfo<TransportUnderTest>& info) {
  return info.param.name;
}

void Participant::sleep() {
  if (endpoint.prepare_wait()) {
    pollfd entry = {.fd = endpoint.wait_fd(), .events = POLLIN, .revents = 0};
    if (::poll(&entry, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count())) == 0) {
      endpoint.finish_wait();
      throw std::runtime_error("slept and was never woken");
    }
  }
  endpoint.finish_wait();
}

void Participant::drive(std::span<Channel* const> channels, const std::function<bool()>& done) {
  const Deadline deadline = Deadline::after(kPatience);
  while (!done()) {
    bool moved = false;
    for (Channel* channel : channels) moved |= channel->pump();
    if (moved || done()) continue;
    if (stop_.load()) throw std::runtime_error("another rank has failed");
    if (deadline.passed()) throw std::runtime_error("the test took too long");
    sleep();
  }
}

void Participant::drive(Channel& channel, const std::function<bool()>& done) {
  Channel* const only = &channel;
  drive(std::span(&only, 1), done);
}

void run_ranks(std::span<const std::unique_ptr<Endpoint>> endpoints, const RankFunction& body) {
  std::atomic<bool> stop{false};
  std::atomic<int> running{static_cast<int>(endpoints.size())};
  const auto run_one = [&](Endpoint& endpoint) {
    bool finished = false;
    try {
      Participant participant(endpoint, stop);
      body(participant);
      finished = true;
    } catch (const std::exception& error) {
      report(endpoint.rank(), error.what());
    } catch (const EnvelopeMismatch&) {
      report(endpoint.rank(), "an envelope mismatch that nobody expected");
    }
    running.fetch_sub(1);
    if (finished) {
      linger(endpoint, running);
      return;
    }
    stop.store(true);
    for (const std::unique_ptr<Endpoint>& other : endpoints) other->wake();
  };
  std::vector<std::jthread> threads;
  for (const std::unique_ptr<Endpoint>& endpoint : endpoints) {
    threads.emplace_back([&run_one, &endpoint] { run_one(*endpoint); });
  }
}

std::vector<std::byte> distinct_bytes(Rank from, Rank to, std::uint64_t message, std::size_t bytes) {
  std::uint64_t state =
      0x9e3779b97f4a7c15u * (static_cast<std::uint64_t>(from) * 1009 + to * 31 + message * 7919 + 1);
  std::vector<std::byte> result(bytes);
  for (std::size_t at = 0; at < bytes; at += sizeof(state)) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(result.data() + at, &state, std::min(sizeof(state), bytes - at));
  }
  return result;
}

void expect_same_bytes(ConstBytes got, ConstBytes expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  const auto [at, other] = std::mismatch(got.begin(), got.end(), expected.begin());
  EXPECT_EQ(at - got.begin(), static_cast<std::ptrdiff_t>(got.size()))
      << what << ": first difference is at this byte";
}

}  // namespace lockstep::transport
