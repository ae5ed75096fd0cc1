// SPDX-License-Identifier: Apache-2.0
//
// Notices, failures, sleep and death.
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include <poll.h>

#include "tests/transport/conformance.h"

namespace lockstep::transport {
namespace {

using namespace std::chrono_literals;

NoticeHead head_of(Rank rank, std::uint64_t index) {
  NoticeHead head;
  const std::vector<std::byte> bytes = distinct_bytes(rank, 0, index, head.size());
  std::memcpy(head.data(), bytes.data(), head.size());
  return head;
}

// Notices of transports without shared memory travel when pushed, and wake nobody: look again now and then.
void wait_for_notices(Participant& me, Rank peer, StreamId stream, std::uint64_t count) {
  while (me.endpoint.notices_of(peer, stream) < count) {
    me.endpoint.channel(peer, stream).pump();
    std::this_thread::sleep_for(1ms);
  }
}

TEST_P(Conformance, NoticesOfPeersCanBeReadBack) {
  run(3, [](Participant& me) {
    constexpr std::uint64_t kNotices = 5;
    for (StreamId stream : {0u, 3u}) {
      for (std::uint64_t index = 0; index < kNotices; ++index) {
        me.endpoint.publish(stream, index, head_of(me.rank() + 10 * static_cast<int>(stream), index));
        for (Rank peer = 0; peer < me.world(); ++peer) {
          if (peer != me.rank()) me.endpoint.push_notice(peer, stream);
        }
      }
    }
    for (Rank peer = 0; peer < me.world(); ++peer) {
      if (peer == me.rank()) continue;
      for (StreamId stream : {0u, 3u}) {
        wait_for_notices(me, peer, stream, kNotices);
        EXPECT_EQ(me.endpoint.notices_of(peer, stream), kNotices);
        EXPECT_EQ(me.endpoint.notice_of(peer, stream, kNotices - 1),
                  head_of(peer + 10 * static_cast<int>(stream), kNotices - 1));
        EXPECT_FALSE(me.endpoint.notice_of(peer, stream, kNotices).has_value());
      }
      EXPECT_EQ(me.endpoint.notices_of(peer, 1), 0u);
      EXPECT_FALSE(me.endpoint.failure_of(peer, 0).has_value());
    }
  });
}

TEST_P(Conformance, AReaderNeverSeesHalfANotice) {
  run(2, [](Participant& me) {
    constexpr std::uint64_t kNotices = 5000;
    if (me.rank() == 0) {
      for (std::uint64_t index = 0; index < kNotices; ++index) {
        me.endpoint.publish(0, index, head_of(0, index));
        if (index % 50 == 0 || index + 1 == kNotices) me.endpoint.push_notice(1, 0);
      }
      return;
    }
    for (std::uint64_t known = 0; known < kNotices;) {
      me.endpoint.channel(0, 0).pump();
      known = me.endpoint.notices_of(0, 0);
      if (known == 0) continue;
      const auto head = me.endpoint.notice_of(0, 0, known - 1);
      if (head) {
        EXPECT_EQ(*head, head_of(0, known - 1));
      }
    }
    EXPECT_EQ(me.endpoint.notice_of(0, 0, kNotices - 1), head_of(0, kNotices - 1));
    EXPECT_FALSE(me.endpoint.notice_of(0, 0, kNotices - 1 - kNoticeHistory).has_value());
  });
}

TEST_P(Conformance, AFailureWakesEverybodyAndOnlyTheFirstCounts) {
  run(3, [](Participant& me) {
    if (me.rank() == 1) {
      std::this_thread::sleep_for(20ms);
      me.endpoint.fail(2, std::string(kMaxFailureText + 100, 'x'));
      me.endpoint.fail(2, "second");
      return;
    }
    me.wait_until([&] { return me.endpoint.failure_of(1, 2).has_value(); });
    EXPECT_EQ(me.endpoint.failure_of(1, 2), std::string(kMaxFailureText, 'x'));
    EXPECT_FALSE(me.endpoint.failure_of(1, 0).has_value());
  });
}

void ping_pong(Participant& me, std::uint64_t rounds, std::size_t bytes) {
  Channel& channel = me.endpoint.channel(1 - me.rank(), 0);
  std::vector<std::byte> out(bytes);
  std::vector<std::byte> in(bytes);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Envelope envelope = {.contract = 1, .sequence = round};
    out[0] = std::byte(round);
    channel.receive(envelope, in);
    if (me.rank() == 0) channel.send(envelope, out);
    me.drive(channel, [&] { return channel.receives_done() == round + 1; });
    ASSERT_EQ(in[0], std::byte(round));
    if (me.rank() == 1) channel.send(envelope, out);
    me.drive(channel, [&] { return channel.sends_done() == round + 1; });
  }
}

// Every wait here may sleep, and a lost wake-up would sleep for ever.
TEST_P(Conformance, NoWakeUpIsLostInTenThousandShortMessages) {
  run(2, [](Participant& me) { ping_pong(me, 10'000, 8); });
}

TEST_P(Conformance, NoWakeUpIsLostInLongMessages) {
  run(2, [](Participant& me) { ping_pong(me, 300, 500'000); });
}

TEST_P(Conformance, WakeEndsASleep) {
  run(1, [](Participant& me) {
    const std::jthread other([&] {
      std::this_thread::sleep_for(10ms);
      me.endpoint.wake();
    });
    pollfd entry = {.fd = me.endpoint.wait_fd(), .events = POLLIN, .revents = 0};
    const bool slept = me.endpoint.prepare_wait() && ::poll(&entry, 1, 20'000) == 1;
    me.endpoint.finish_wait();
    EXPECT_TRUE(slept);
    EXPECT_EQ(::poll(&entry, 1, 0), 0) << "finish_wait() left the descriptor readable";
  });
}

TEST_P(Conformance, AnIdleWorldStaysAsleep) {
  run(3, [](Participant& me) {
    pollfd entry = {.fd = me.endpoint.wait_fd(), .events = POLLIN, .revents = 0};
    for (int tries = 0; !me.endpoint.prepare_wait(); ++tries) {
      me.endpoint.finish_wait();
      ASSERT_LT(tries, 10) << "prepare_wait() keeps refusing although nothing happens";
    }
    EXPECT_EQ(::poll(&entry, 1, 50), 0);
    me.endpoint.finish_wait();
  });
}

// Peers may be a round ahead, or send in a group where this rank does not wait: that must not keep it awake.
// Nor may what they sent be slept through once it is asked for.
TEST_P(Conformance, AMessageThatNobodyAsksForLetsItsReceiverSleep) {
  run(2, [](Participant& me) {
    const Rank peer = 1 - me.rank();
    std::vector<std::byte> ahead(100, std::byte{7});
    std::vector<std::byte> awaited(10, std::byte{1});
    Channel& unasked = me.endpoint.channel(peer, 0);
    Channel& asked = me.endpoint.channel(peer, 1);
    const std::array<Channel*, 2> both = {&unasked, &asked};
    if (me.rank() == 1) {
      unasked.send({1, 1}, ahead);
      asked.send({2, 1}, awaited);
      asked.receive({3, 1}, awaited);
      me.drive(both, [&] { return asked.receives_done() == 1; });
      return;
    }
    asked.receive({2, 1}, awaited);
    me.drive(asked, [&] { return asked.receives_done() == 1; });
    pollfd entry = {.fd = me.endpoint.wait_fd(), .events = POLLIN, .revents = 0};
    for (int sleeps = 0, refusals = 0; sleeps < 10;) {
      const bool may_sleep = me.endpoint.prepare_wait();
      if (may_sleep) ::poll(&entry, 1, 1);
      me.endpoint.finish_wait();
      ++(may_sleep ? sleeps : refusals);
      ASSERT_LT(refusals, 10) << "what nobody asks for keeps this rank awake";
    }
    unasked.receive({1, 1}, ahead);
    me.drive(unasked, [&] { return unasked.receives_done() == 1; });
    asked.send({3, 1}, awaited);
    me.drive(asked, [&] { return asked.sends_done() == 1; });
  });
}

TEST_P(Conformance, TheDeathOfAPeerIsNoticedAsleep) {
  std::vector<std::unique_ptr<Endpoint>> endpoints = GetParam().make_world(3);
  std::unique_ptr<Endpoint> victim = std::move(endpoints[1]);
  const std::vector<std::byte> last_words(100, std::byte{7});
  victim->channel(0, 0).send({1, 1}, last_words);
  while (victim->channel(0, 0).sends_done() < 1) victim->channel(0, 0).pump();
  std::vector<std::unique_ptr<Endpoint>> survivors;
  survivors.push_back(std::move(endpoints[0]));
  survivors.push_back(std::move(endpoints[2]));
  const std::jthread killer([&] {
    std::this_thread::sleep_for(20ms);
    victim.reset();
  });
  std::atomic<bool> stop{false};
  std::vector<std::jthread> threads;
  for (const std::unique_ptr<Endpoint>& survivor : survivors) {
    threads.emplace_back([&] {
      Participant me(*survivor, stop);
      me.wait_until([&] { return !me.endpoint.alive(1); });
      EXPECT_TRUE(me.endpoint.alive(me.rank() == 0 ? 2 : 0));
      if (me.rank() != 0) return;
      std::vector<std::byte> into(100);
      Channel& channel = me.endpoint.channel(1, 0);
      channel.receive({1, 1}, into);
      me.drive(channel, [&] { return channel.receives_done() == 1; });
      EXPECT_EQ(into, last_words) << "what a rank sent before it died is still delivered";
    });
  }
}

}  // namespace
}  // namespace lockstep::transport
