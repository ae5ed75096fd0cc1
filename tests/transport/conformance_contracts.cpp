// SPDX-License-Identifier: Apache-2.0
//
// Two ranks that disagree about a message are told so, and no byte of it moves.
#include <algorithm>
#include <optional>

#include "tests/transport/conformance.h"

namespace lockstep::transport {
namespace {

struct Disagreement {
  Envelope sent;
  Envelope expected;
  std::size_t sent_bytes;
  std::size_t expected_bytes;
};

const std::vector<Disagreement> kDisagreements = {
    {{1, 1}, {2, 1}, 100, 100},         // another operation
    {{1, 1}, {1, 2}, 100, 100},         // another sequence number
    {{1, 1}, {1, 1}, 100, 101},         // another size, short
    {{1, 1}, {1, 1}, 50'000, 20'000},   // long for the receiver
    {{1, 1}, {1, 1}, 20'000, 50'000},   // short for the receiver
    {{1, 1}, {3, 1}, 200'000, 200'000}  // long, in several pieces
};

// The first mismatch that pumping and looking at the channel finds.
template <typename Look>
std::optional<EnvelopeMismatch> find_mismatch(Participant& me, Channel& channel, Look look) {
  std::optional<EnvelopeMismatch> found;
  try {
    me.drive(channel, [&] { return look(); });
  } catch (const EnvelopeMismatch& mismatch) {
    found = mismatch;
  }
  return found;
}

void expect_receiver_sees(Participant& me, const Disagreement& wrong, bool by_view) {
  Channel& channel = me.endpoint.channel(0, 0);
  std::vector<std::byte> into(wrong.expected_bytes, std::byte{0x5a});
  if (by_view) {
    channel.receive_view(wrong.expected, wrong.expected_bytes);
  } else {
    channel.receive(wrong.expected, into);
  }
  const auto found = find_mismatch(me, channel, [&] { return by_view && !channel.view().empty(); });
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->mine, wrong.expected);
  EXPECT_EQ(found->theirs, wrong.sent);
  EXPECT_EQ(found->my_bytes, wrong.expected_bytes);
  EXPECT_EQ(found->their_bytes, wrong.sent_bytes);
  EXPECT_TRUE(std::all_of(into.begin(), into.end(), [](std::byte b) { return b == std::byte{0x5a}; }));
  channel.abandon();
  me.endpoint.fail(0, "mismatch");
}

void run_sender(Participant& me, const Disagreement& wrong) {
  Channel& channel = me.endpoint.channel(1, 0);
  const std::vector<std::byte> payload(wrong.sent_bytes, std::byte{1});
  channel.send(wrong.sent, payload);
  // A sender may see it as well, when the receiver's wish reaches it first.
  find_mismatch(me, channel, [&] { return me.endpoint.failure_of(1, 0).has_value(); });
  channel.abandon();
  me.wait_until([&] { return me.endpoint.failure_of(1, 0).has_value(); });
}

TEST_P(Conformance, ReceiverIsToldOfEveryDisagreement) {
  for (const Disagreement& wrong : kDisagreements) {
    for (bool by_view : {false, true}) {
      run(2, [&](Participant& me) {
        if (me.rank() == 0) run_sender(me, wrong);
        if (me.rank() == 1) expect_receiver_sees(me, wrong, by_view);
      });
    }
  }
}

TEST_P(Conformance, LandingComparesEnvelopes) {
  const bool lands = GetParam().lands;
  run(2, [lands](Participant& me) {
    Channel& channel = me.endpoint.channel(1 - me.rank(), 0);
    constexpr Envelope kMine = {1, 1};
    constexpr Envelope kTheirs = {2, 2};
    if (me.rank() == 1) {
      const Bytes memory = me.endpoint.allocate(100'000);
      channel.receive(kTheirs, memory);
      me.wait_until([&] { return me.endpoint.failure_of(0, 0).has_value(); });
      channel.abandon();
      return;
    }
    if (!lands) {
      EXPECT_TRUE(channel.landing(kMine, 50'000).empty());
      me.endpoint.fail(0, "nothing to compare");
      return;
    }
    const auto found = find_mismatch(me, channel, [&] { return !channel.landing(kMine, 50'000).empty(); });
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->mine, kMine);
    EXPECT_EQ(found->theirs, kTheirs);
    EXPECT_EQ(found->my_bytes, 50'000u);
    EXPECT_EQ(found->their_bytes, 100'000u);
    me.endpoint.fail(0, "mismatch");
  });
}

TEST_P(Conformance, AnAbandonedChannelTouchesNothing) {
  run(2, [](Participant& me) {
    Channel& channel = me.endpoint.channel(1 - me.rank(), 0);
    constexpr Envelope kEnvelope = {1, 1};
    if (me.rank() == 0) {
      std::vector<std::byte> into(300'000, std::byte{0x11});
      channel.receive(kEnvelope, into);
      channel.abandon();
      me.endpoint.fail(0, "gave up");
      me.wait_until([&] { return me.endpoint.failure_of(1, 0).has_value(); });
      for (int i = 0; i < 10; ++i) channel.pump();
      EXPECT_TRUE(std::all_of(into.begin(), into.end(), [](std::byte b) { return b == std::byte{0x11}; }));
      return;
    }
    const std::vector<std::byte> payload(300'000, std::byte{2});
    me.wait_until([&] { return me.endpoint.failure_of(0, 0) == "gave up"; });
    channel.send(kEnvelope, payload);
    channel.pump();
    channel.abandon();
    me.endpoint.fail(0, "gave up too");
  });
}

}  // namespace
}  // namespace lockstep::transport
