// SPDX-License-Identifier: Apache-2.0
//
// What strangers on a listening port can do: none of it may let them in, stop the listener, or keep an honest
// peer out.
#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/listener.h"
#include "lockstep/transport/connect/socket.h"

#include "tests/support/credentials.h"

namespace lockstep::transport {
namespace {

using namespace std::chrono_literals;
using test::credentials;

constexpr ListenerLimits kShort{.max_pending = 64, .handshake_timeout = 300ms};

Deadline soon() {
  return Deadline::after(30s);
}

Descriptor raw_connection(const Address& to) {
  return connect_socket(resolve(to, soon()).front(), soon());
}

void raw_send(const Descriptor& socket, ConstBytes bytes) {
  ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

// What the listener says until it closes; gives up at the deadline.
std::vector<std::byte> read_until_closed(const Descriptor& socket, bool& closed) {
  std::vector<std::byte> said;
  std::vector<std::byte> buffer(1024);
  const Deadline deadline = soon();
  closed = false;
  while (wait_ready(socket.get(), Readiness::read, deadline)) {
    const ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (got <= 0) {
      closed = true;
      break;
    }
    said.insert(said.end(), buffer.begin(), buffer.begin() + got);
  }
  return said;
}

void expect_closed(const Descriptor& socket) {
  bool closed = false;
  read_until_closed(socket, closed);
  EXPECT_TRUE(closed);
}

template <typename Condition>
void wait_until(Condition condition) {
  const Deadline deadline = soon();
  while (!condition() && !deadline.passed()) std::this_thread::sleep_for(2ms);
  EXPECT_TRUE(condition());
}

class Hostile : public testing::Test {
 protected:
  void expect_honest_peer_gets_in() {
    auto dialer = dial(listener_.address(), credentials(7), soon());
    auto accepted = listener_.accept(soon());
    EXPECT_EQ(accepted.peer.rank, 7);
    const std::byte sent{42};
    std::byte received{};
    dialer.connection->write_all(ConstBytes(&sent, 1), soon());
    accepted.connection->read_all(Bytes(&received, 1), soon());
    EXPECT_EQ(received, sent);
  }

  Listener listener_{{.host = "127.0.0.1", .port = 0, .unix_name = {}}, credentials(0), kShort};
};

TEST_F(Hostile, GarbageIsRefused) {
  std::mt19937 random(1);
  constexpr std::uint64_t kTries = 100;
  for (std::uint64_t i = 0; i < kTries; ++i) {
    std::vector<std::byte> garbage(1 + random() % 5000);
    for (std::byte& byte : garbage) byte = static_cast<std::byte>(random());
    garbage[0] = std::byte{'x'};
    const Descriptor socket = raw_connection(listener_.address());
    raw_send(socket, garbage);
    expect_closed(socket);
  }
  EXPECT_EQ(listener_.counters().refused, kTries);
  expect_honest_peer_gets_in();
}

TEST_F(Hostile, RightMagicWithNonsenseAfterItIsRefused) {
  std::mt19937 random(2);
  for (int i = 0; i < 100; ++i) {
    std::vector<std::byte> garbage(152 + 32);
    for (std::byte& byte : garbage) byte = static_cast<std::byte>(random());
    const std::string magic = "LOCKSTEP";
    std::ranges::copy(std::as_bytes(std::span(magic)), garbage.begin());
    const Descriptor socket = raw_connection(listener_.address());
    raw_send(socket, garbage);
    expect_closed(socket);
  }
  EXPECT_EQ(listener_.counters().accepted, 0u);
  expect_honest_peer_gets_in();
}

TEST_F(Hostile, SilentAndHalfOpenConnectionsTimeOut) {
  const Descriptor silent = raw_connection(listener_.address());
  const Descriptor half_open = raw_connection(listener_.address());
  ::shutdown(half_open.get(), SHUT_WR);
  expect_honest_peer_gets_in();
  expect_closed(silent);
  expect_closed(half_open);
  EXPECT_EQ(listener_.counters().timed_out, 1u);
  EXPECT_EQ(listener_.counters().refused, 1u);
}

TEST_F(Hostile, SlowBytesDoNotExtendTheTime) {
  const Descriptor slow = raw_connection(listener_.address());
  std::atomic<bool> stop = false;
  std::jthread trickle([&] {
    const std::string magic = "LOCKSTEP" + std::string(144, '\0');
    for (std::size_t i = 0; i < magic.size() && !stop; ++i) {
      raw_send(slow, std::as_bytes(std::span(magic)).subspan(i, 1));
      std::this_thread::sleep_for(20ms);
    }
  });
  expect_honest_peer_gets_in();
  wait_until([&] { return listener_.counters().timed_out == 1; });
  stop = true;
}

TEST_F(Hostile, ACapturedHandshakeCannotBeReplayed) {
  // Records what an honest dialer sends, by standing between it and the listener.
  std::vector<std::byte> captured;
  {
    const Descriptor trap = open_listening_socket({.host = "127.0.0.1", .port = 0, .unix_name = {}});
    const Address trap_address = bound_address(trap.get(), {.host = "127.0.0.1", .port = 0, .unix_name = {}});
    std::jthread honest([&] { dial(trap_address, credentials(3), soon()); });
    ASSERT_TRUE(wait_ready(trap.get(), Readiness::read, soon()));
    int error = 0;
    const Descriptor from_dialer = accept_socket(trap.get(), error);
    const Descriptor to_listener = raw_connection(listener_.address());
    const auto forward = [&](const Descriptor& from, const Descriptor& to, std::size_t bytes) {
      std::vector<std::byte> moved;
      std::vector<std::byte> buffer(bytes);
      while (moved.size() < bytes && wait_ready(from.get(), Readiness::read, soon())) {
        const ssize_t got = ::recv(from.get(), buffer.data(), bytes - moved.size(), 0);
        if (got <= 0) break;
        moved.insert(moved.end(), buffer.begin(), buffer.begin() + got);
      }
      raw_send(to, moved);
      return moved;
    };
    captured = forward(from_dialer, to_listener, 152);
    forward(to_listener, from_dialer, 152);
    const auto proof = forward(from_dialer, to_listener, 32);
    captured.insert(captured.end(), proof.begin(), proof.end());
    forward(to_listener, from_dialer, 33);
  }
  EXPECT_EQ(listener_.accept(soon()).peer.rank, 3);
  ASSERT_EQ(captured.size(), 152u + 32u);

  for (int i = 0; i < 10; ++i) {
    const Descriptor thief = raw_connection(listener_.address());
    raw_send(thief, captured);
    bool closed = false;
    const auto said = read_until_closed(thief, closed);
    EXPECT_TRUE(closed);
    EXPECT_EQ(said.size(), 152u + 1u);  // a hello and a refusal, never a proof
  }
  EXPECT_EQ(listener_.counters().accepted, 1u);
  EXPECT_EQ(listener_.counters().refused, 10u);
  expect_honest_peer_gets_in();
}

TEST_F(Hostile, TwoThousandConnectionsAtOnceDoNotKeepAnHonestPeerOut) {
  constexpr std::size_t kCrowd = 2000;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ASSERT_GT(limit.rlim_cur, kCrowd + 200) << "this test needs a hard limit of open files above 2200";

  std::vector<Descriptor> crowd;
  for (std::size_t i = 0; i < kCrowd; ++i) {
    crowd.push_back(raw_connection(listener_.address()));
    if (i % 3 == 0) raw_send(crowd.back(), std::as_bytes(std::span("LOCK", 4)));
    if (i % 500 == 499) expect_honest_peer_gets_in();
  }
  const auto turned_away = [&] {
    const ListenerCounters counters = listener_.counters();
    return counters.refused + counters.timed_out + counters.overflowed;
  };
  wait_until([&] { return turned_away() == kCrowd; });
  EXPECT_EQ(listener_.counters().accepted, kCrowd / 500);
  EXPECT_GE(listener_.counters().overflowed, 1u);
  expect_honest_peer_gets_in();
}

TEST_F(Hostile, AFloodOfResetsDoesNotStopTheListener) {
  std::jthread flood([&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      const Descriptor socket = raw_connection(listener_.address());
      const linger reset{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    }
  });
  for (int i = 0; i < 20; ++i) expect_honest_peer_gets_in();
}

}  // namespace
}  // namespace lockstep::transport
