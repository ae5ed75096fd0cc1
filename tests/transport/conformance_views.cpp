// SPDX-License-Identifier: Apache-2.0
//
// Reading in place with view(), and writing in place with landing() and put().
#include <algorithm>
#include <cstring>

#include "tests/transport/conformance.h"

namespace lockstep::transport {
namespace {

constexpr Envelope kEnvelope = {.contract = 5, .sequence = 9};

void send_all(Participant& me, Rank to, ConstBytes payload) {
  Channel& channel = me.endpoint.channel(to, 0);
  const std::uint64_t before = channel.sends_done();
  channel.send(kEnvelope, payload);
  me.drive(channel, [&] { return channel.sends_done() == before + 1; });
}

// Consumes in pieces of 1, 2, 3, 5, 8, ... bytes, as far as the view reaches.
std::vector<std::byte> receive_by_views(Participant& me, Rank from, std::size_t bytes) {
  Channel& channel = me.endpoint.channel(from, 0);
  const std::uint64_t before = channel.receives_done();
  channel.receive_view(kEnvelope, bytes);
  std::vector<std::byte> got;
  std::size_t piece = 1;
  std::size_t next = 2;
  me.drive(channel, [&] {
    for (ConstBytes view = channel.view(); !view.empty(); view = channel.view()) {
      EXPECT_LE(view.size(), bytes - got.size());
      EXPECT_GE(channel.received_bytes(), got.size() + view.size());
      const std::size_t now = std::min(piece, view.size());
      got.insert(got.end(), view.begin(), view.begin() + static_cast<std::ptrdiff_t>(now));
      channel.consume(now);
      piece = std::exchange(next, piece + next);
      if (got.size() == bytes) break;
    }
    return channel.receives_done() == before + 1;
  });
  return got;
}

TEST_P(Conformance, ViewsGiveTheWholeMessageInOddPieces) {
  run(2, [](Participant& me) {
    for (std::size_t bytes : {1, 64, 5000, 16 * 1024, 33'333, 300'001, 2'000'003}) {
      for (bool registered : {false, true}) {
        const std::vector<std::byte> expected = distinct_bytes(0, 1, bytes, bytes);
        if (me.rank() == 1) {
          expect_same_bytes(receive_by_views(me, 0, bytes), expected,
                            std::to_string(bytes) + " bytes viewed");
          continue;
        }
        if (!registered) {
          send_all(me, 1, expected);
          continue;
        }
        const Bytes memory = me.endpoint.allocate(bytes);
        std::memcpy(memory.data(), expected.data(), bytes);
        send_all(me, 1, memory);
        me.endpoint.release(memory);
      }
    }
  });
}

TEST_P(Conformance, NothingIsVisibleWithoutAPostedView) {
  run(2, [](Participant& me) {
    Channel& channel = me.endpoint.channel(1 - me.rank(), 0);
    EXPECT_TRUE(channel.view().empty());
    const std::vector<std::byte> mine = distinct_bytes(me.rank(), 1 - me.rank(), 0, 600);
    std::vector<std::byte> theirs(600);
    channel.send(kEnvelope, mine);
    channel.receive(kEnvelope, theirs);
    channel.receive_view(kEnvelope, 600);
    channel.send(kEnvelope, mine);
    me.drive(channel, [&] {
      // The first receive is not a view: until it is done there is nothing to see.
      const bool first_done = channel.receives_done() > 0;
      const ConstBytes view = channel.view();
      if (!first_done && channel.receives_done() == 0) {
        EXPECT_TRUE(view.empty());
      }
      return view.size() == 600;
    });
    expect_same_bytes(channel.view(), theirs, "second message");
    channel.consume(600);
    EXPECT_EQ(channel.receives_done(), 2u);
    me.drive(channel, [&] { return channel.sends_done() == 2; });
  });
}

TEST_P(Conformance, TakesPutsAndSendsInTurn) {
  static constexpr std::size_t kBytes = 200'000;
  static constexpr std::uint64_t kMessages = 20;
  const bool lands = GetParam().lands;
  run(2, [lands](Participant& me) {
    Channel& channel = me.endpoint.channel(1 - me.rank(), 0);
    const Bytes memory = me.endpoint.allocate(kBytes);
    std::uint64_t puts = 0;
    for (std::uint64_t message = 0; message < kMessages; ++message) {
      const std::vector<std::byte> expected = distinct_bytes(0, 1, message, kBytes);
      if (me.rank() == 1) {
        std::fill(memory.begin(), memory.end(), std::byte{0});
        channel.receive(kEnvelope, memory);
        me.drive(channel, [&] { return channel.receives_done() == message + 1; });
        expect_same_bytes(memory, expected, "message " + std::to_string(message));
        continue;
      }
      Bytes landing;
      // Where memory can be written in place, wait for the peer to offer it, every other time.
      if (lands && message % 2 == 0)
        me.drive(channel, [&] { return !(landing = channel.landing(kEnvelope, kBytes)).empty(); });
      if (landing.empty()) {
        channel.send(kEnvelope, expected);
      } else {
        ASSERT_EQ(landing.size(), kBytes);
        std::memcpy(landing.data(), expected.data(), kBytes);
        channel.put(kEnvelope);
        ++puts;
      }
      me.drive(channel, [&] { return channel.sends_done() == message + 1; });
    }
    if (me.rank() == 0) {
      EXPECT_EQ(puts, lands ? kMessages / 2 : 0u);
    }
    me.endpoint.release(memory);
  });
}

TEST_P(Conformance, OrdinaryMemoryThatCannotBeReachedIsNeverOffered) {
  run(2, [](Participant& me) {
    Channel& channel = me.endpoint.channel(1 - me.rank(), 0);
    std::vector<std::byte> theirs(100'000);
    const std::vector<std::byte> mine = distinct_bytes(me.rank(), 1 - me.rank(), 0, 100'000);
    channel.receive(kEnvelope, theirs);
    const Bytes landing = channel.landing(kEnvelope, mine.size());
    if (landing.empty()) {
      channel.send(kEnvelope, mine);
    } else {
      ASSERT_EQ(landing.size(), mine.size());
      std::memcpy(landing.data(), mine.data(), mine.size());
      channel.put(kEnvelope);
    }
    me.drive(channel, [&] { return channel.receives_done() == 1 && channel.sends_done() == 1; });
    expect_same_bytes(theirs, distinct_bytes(1 - me.rank(), me.rank(), 0, 100'000), "ordinary memory");
  });
}

}  // namespace
}  // namespace lockstep::transport
