// SPDX-License-Identifier: Apache-2.0
//
// What strangers on a listening port can do: none of it may let them in, stop the listener, or keep an honest
// peer out.
#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/listener.h"
#include "lockstep/transport/connect/socket.h"

#include "tests/support/credentials.h"
#include "tests/support/refusals.h"
#include "tests/support/strangers.h"

namespace lockstep::transport {
namespace {

using namespace std::chrono_literals;
using namespace test;

constexpr ListenerLimits kShort{.max_pending = 64, .handshake_timeout = 300ms};

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
    const Descriptor socket = raw_connection(listener_.address());
    raw_send(socket, garbage(random, 1 + random() % 5000));
    read_until_closed(socket);
  }
  EXPECT_EQ(listener_.counters().refused, kTries);
  expect_honest_peer_gets_in();
}

TEST_F(Hostile, ManyRefusalsAreFewLines) {
  expect_few_refusals_logged("closed the connection of", [this] {
    for (int i = 0; i < 100; ++i) {
      const Descriptor socket = raw_connection(listener_.address());
      raw_send(socket, std::vector<std::byte>(kHelloBytes, std::byte{0x5a}));
      read_until_closed(socket);
    }
  });
}

TEST_F(Hostile, RightMagicWithNonsenseAfterItIsRefused) {
  std::mt19937 random(2);
  for (int i = 0; i < 100; ++i) {
    const Descriptor socket = raw_connection(listener_.address());
    raw_send(socket, hello_with(garbage(random, kHelloBytes + kProofBytes)));
    read_until_closed(socket);
  }
  EXPECT_EQ(listener_.counters().accepted, 0u);
  expect_honest_peer_gets_in();
}

TEST_F(Hostile, SilentAndHalfOpenConnectionsTimeOut) {
  const Descriptor silent = raw_connection(listener_.address());
  const Descriptor half_open = raw_connection(listener_.address());
  ::shutdown(half_open.get(), SHUT_WR);
  expect_honest_peer_gets_in();
  read_until_closed(silent);
  read_until_closed(half_open);
  EXPECT_EQ(listener_.counters().timed_out, 1u);
  EXPECT_EQ(listener_.counters().refused, 1u);
}

TEST_F(Hostile, SlowBytesDoNotExtendTheTime) {
  const Descriptor slow = raw_connection(listener_.address());
  std::atomic<bool> stop = false;
  std::jthread trickle([&] {
    const std::vector<std::byte> hello = hello_with(std::vector<std::byte>(kHelloBytes));
    for (std::size_t i = 0; i < hello.size() && !stop; ++i) {
      raw_send(slow, ConstBytes(hello).subspan(i, 1));
      std::this_thread::sleep_for(20ms);
    }
  });
  expect_honest_peer_gets_in();
  wait_until([&] { return listener_.counters().timed_out == 1; });
  stop = true;
}

TEST_F(Hostile, ACapturedHandshakeCannotBeReplayed) {
  const std::vector<std::byte> captured = captured_handshake(listener_.address(), credentials(3));
  EXPECT_EQ(listener_.accept(soon()).peer.rank, 3);
  ASSERT_EQ(captured.size(), kHelloBytes + kProofBytes);

  for (int i = 0; i < 10; ++i) {
    const Descriptor thief = raw_connection(listener_.address());
    raw_send(thief, captured);
    EXPECT_EQ(read_until_closed(thief).size(),
              kHelloBytes + kVerdictBytes);  // a hello and a refusal, never a proof
  }
  EXPECT_EQ(listener_.counters().accepted, 1u);
  EXPECT_EQ(listener_.counters().refused, 10u);
  expect_honest_peer_gets_in();
}

TEST_F(Hostile, TwoThousandConnectionsAtOnceDoNotKeepAnHonestPeerOut) {
  constexpr std::size_t kCrowd = 2000;
  allow_open_files(kCrowd + 200);
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
