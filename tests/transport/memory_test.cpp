// SPDX-License-Identifier: Apache-2.0
//
// The words of a channel, whatever a peer writes into them.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/memory/channel.h"
#include "lockstep/transport/memory/mapping.h"
#include "lockstep/transport/memory/notices.h"
#include "lockstep/transport/memory/queue.h"

namespace lockstep::transport {
namespace {

constexpr Envelope kEnvelope = {.contract = 3, .sequence = 4};

// Segment 7 is one array; nothing else can be reached.
class OneSegment final : public AddressSpace {
 public:
  explicit OneSegment(Bytes memory) : memory_(memory) {}

  std::optional<Place> expose(ConstBytes memory) override {
    if (memory.data() < memory_.data() || memory.data() >= memory_.data() + memory_.size())
      return std::nullopt;
    return Place{.segment = 7, .offset = static_cast<std::uint64_t>(memory.data() - memory_.data())};
  }
  std::byte* resolve(Place place, std::size_t bytes) override {
    if (place.segment != 7 || place.offset > memory_.size() || bytes > memory_.size() - place.offset) {
      throw DataError("outside");
    }
    return memory_.data() + place.offset;
  }

 private:
  Bytes memory_;
};

// Both ends of a channel in one thread.
class MemoryChannelTest : public testing::Test {
 protected:
  ChannelBlock& words(int side) { return blocks_[side].as<ChannelBlock>(); }

  Mapping blocks_[2] = {Mapping::anonymous(sizeof(ChannelBlock)), Mapping::anonymous(sizeof(ChannelBlock))};
  std::vector<std::byte> shared_ = std::vector<std::byte>(1 << 20);
  OneSegment space_{shared_};
  Word awake_{0};
  Bell bell_{awake_, -1};
  MemoryChannel left_{words(0), words(1), space_, bell_};
  MemoryChannel right_{words(1), words(0), space_, bell_};
};

TEST_F(MemoryChannelTest, ShortMessagesAreDoneAtOnce) {
  std::vector<std::byte> payload(kEagerBytes, std::byte{9});
  left_.send(kEnvelope, payload);
  EXPECT_EQ(left_.sends_done(), 1u);
  right_.receive_view(kEnvelope, payload.size());
  EXPECT_EQ(right_.view().size(), payload.size());
}

TEST_F(MemoryChannelTest, LongRegisteredMessagesAreReadInPlace) {
  const Bytes payload = Bytes(shared_).first(kEagerBytes + 1);
  left_.send(kEnvelope, payload);
  EXPECT_EQ(left_.sends_done(), 0u);
  right_.receive_view(kEnvelope, payload.size());
  EXPECT_EQ(right_.view().data(), payload.data());
  right_.consume(payload.size());
  EXPECT_TRUE(left_.pump());
  EXPECT_EQ(left_.sends_done(), 1u);
}

TEST_F(MemoryChannelTest, DoneIsCountedInOrder) {
  const std::vector<std::byte> small(10);
  left_.send(kEnvelope, Bytes(shared_).first(50'000));
  left_.send(kEnvelope, small);
  EXPECT_EQ(left_.sends_done(), 0u) << "the second no longer needs its payload, but the first does";
  right_.receive_view(kEnvelope, 50'000);
  EXPECT_FALSE(right_.view().empty());
  right_.consume(50'000);
  left_.pump();
  EXPECT_EQ(left_.sends_done(), 2u);
}

TEST_F(MemoryChannelTest, NewsIsWhatHappenedSinceTheLastPump) {
  const std::vector<std::byte> payload(100);
  std::vector<std::byte> into(100);
  right_.receive(kEnvelope, into);
  right_.pump();
  EXPECT_FALSE(right_.has_news());
  left_.send(kEnvelope, payload);
  EXPECT_TRUE(right_.has_news());
  right_.pump();
  EXPECT_FALSE(right_.has_news());
  left_.send(kEnvelope, payload);
  right_.pump();
  EXPECT_FALSE(right_.has_news()) << "seen, and nobody has asked for it yet";
  right_.receive(kEnvelope, into);
  EXPECT_TRUE(right_.has_news()) << "now somebody has";
}

TEST_F(MemoryChannelTest, AGrantIsNewsForOneWhoAskedForIt) {
  left_.pump();
  EXPECT_TRUE(left_.landing(kEnvelope, 100'000).empty());
  EXPECT_FALSE(left_.has_news());
  right_.receive(kEnvelope, Bytes(shared_).first(100'000));
  EXPECT_TRUE(left_.has_news());
  EXPECT_TRUE(left_.pump());
  EXPECT_EQ(left_.landing(kEnvelope, 100'000).data(), shared_.data());
}

TEST_F(MemoryChannelTest, AnAbandonedChannelIsSettledWhenThePeerStopsWriting) {
  right_.receive(kEnvelope, Bytes(shared_).first(100'000));
  EXPECT_FALSE(left_.landing(kEnvelope, 100'000).empty());
  right_.abandon();
  EXPECT_FALSE(right_.settled());
  left_.put(kEnvelope);
  EXPECT_TRUE(right_.settled());
}

TEST_F(MemoryChannelTest, AnAbandonedChannelIsSettledWhenThePeerStopsReading) {
  for (const bool gives_up : {false, true}) {
    left_.send(kEnvelope, Bytes(shared_).first(100'000));
    right_.receive_view(kEnvelope, 100'000);
    EXPECT_EQ(right_.view().data(), shared_.data());
    if (!gives_up) {
      right_.consume(100'000);
      left_.pump();
      continue;
    }
    left_.abandon();
    EXPECT_FALSE(left_.settled());
    right_.consume(10);
    EXPECT_FALSE(left_.settled());
    right_.abandon();
    EXPECT_TRUE(left_.settled());
  }
}

TEST_F(MemoryChannelTest, ThePeerOfAnAbandonedChannelMayNotReadAnyMore) {
  left_.send(kEnvelope, Bytes(shared_).first(100'000));
  left_.abandon();
  right_.receive_view(kEnvelope, 100'000);
  EXPECT_TRUE(right_.view().empty());
  EXPECT_TRUE(left_.settled());
}

TEST_F(MemoryChannelTest, ThePeerOfAnAbandonedChannelMayNotWriteAnyMore) {
  right_.receive(kEnvelope, Bytes(shared_).first(100'000));
  right_.abandon();
  EXPECT_TRUE(left_.landing(kEnvelope, 100'000).empty());
  EXPECT_TRUE(right_.settled());
}

TEST_F(MemoryChannelTest, ChannelsAbandonedOnBothSidesAreSettled) {
  right_.receive(kEnvelope, Bytes(shared_).first(100'000));
  EXPECT_FALSE(left_.landing(kEnvelope, 100'000).empty());
  right_.abandon();
  left_.abandon();
  EXPECT_TRUE(right_.settled());
}

// Corrupts one word of a message that has just been sent, then expects DataError and no byte moved.
void expect_refused(const std::function<void(Parcel&)>& corrupt, std::size_t bytes) {
  Mapping blocks[2] = {Mapping::anonymous(sizeof(ChannelBlock)), Mapping::anonymous(sizeof(ChannelBlock))};
  std::vector<std::byte> shared(1 << 20);
  OneSegment space(shared);
  Word awake{0};
  Bell bell(awake, -1);
  MemoryChannel left(blocks[0].as<ChannelBlock>(), blocks[1].as<ChannelBlock>(), space, bell);
  MemoryChannel right(blocks[1].as<ChannelBlock>(), blocks[0].as<ChannelBlock>(), space, bell);
  left.send(kEnvelope, Bytes(shared).first(bytes));
  corrupt(blocks[0].as<ChannelBlock>().outgoing.parcels[0]);
  std::vector<std::byte> into(bytes, std::byte{0x77});
  right.receive(kEnvelope, into);
  EXPECT_THROW(right.pump(), DataError);
  EXPECT_EQ(into, std::vector<std::byte>(bytes, std::byte{0x77}));
}

TEST(MemoryChannelCorruption, EveryWordOfAParcelIsChecked) {
  for (std::uint64_t wild : {std::uint64_t{0}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    expect_refused([&](Parcel& parcel) { parcel.bytes = wild; }, 100);
    expect_refused([&](Parcel& parcel) { parcel.bytes = wild; }, 100'000);
    expect_refused([&](Parcel& parcel) { parcel.kind_and_segment = wild; }, 100);
    expect_refused([&](Parcel& parcel) { parcel.kind_and_segment = wild; }, 100'000);
  }
  expect_refused([](Parcel& parcel) { parcel.offset = ~std::uint64_t{0}; }, 100);
  expect_refused([](Parcel& parcel) { parcel.offset = kStagingBytes - 1; }, 100);
  expect_refused([](Parcel& parcel) { parcel.offset = ~std::uint64_t{0}; }, 100'000);
  expect_refused([](Parcel& parcel) { parcel.offset = (1 << 20) - 99'999; }, 100'000);
  expect_refused([](Parcel& parcel) { parcel.kind_and_segment = static_cast<std::uint32_t>(Kind::landed); },
                 100);
}

TEST_F(MemoryChannelTest, CountersThatRunAheadAreRefused) {
  left_.send(kEnvelope, Bytes(shared_).first(50'000));
  words(1).incoming.taken = 2;
  EXPECT_THROW(left_.pump(), DataError);
  words(1).incoming.taken = 0;
  words(1).incoming.consumed = 64;
  EXPECT_THROW(left_.pump(), DataError);
}

TEST_F(MemoryChannelTest, AGrantOfAnotherSizeIsRefused) {
  right_.receive(kEnvelope, Bytes(shared_).first(100'000));
  try {
    left_.landing(kEnvelope, 200'000);
    FAIL() << "must throw";
  } catch (const EnvelopeMismatch& mismatch) {
    EXPECT_EQ(mismatch.my_bytes, 200'000u);
    EXPECT_EQ(mismatch.their_bytes, 100'000u);
  }
}

TEST_F(MemoryChannelTest, AGrantOutsideTheSegmentIsRefused) {
  right_.receive(kEnvelope, Bytes(shared_).first(100'000));
  words(1).incoming.grants[0].offset = shared_.size() - 1;
  EXPECT_THROW(left_.landing(kEnvelope, 100'000), DataError);
}

TEST(Staging, PiecesNeverWrapAndNeverOverlap) {
  EXPECT_EQ(place_in_staging(0, 0, kPieceBytes), 0u);
  EXPECT_EQ(place_in_staging(kStagingBytes - 64, kStagingBytes - 64, 64), kStagingBytes - 64);
  EXPECT_EQ(place_in_staging(kStagingBytes - 64, kStagingBytes - 64, 65), kStagingBytes)
      << "the end is skipped";
  EXPECT_EQ(place_in_staging(kStagingBytes, 0, 1), std::nullopt);
  EXPECT_EQ(place_in_staging(kStagingBytes, 64, 64), kStagingBytes);
  EXPECT_EQ(place_in_staging(kStagingBytes, 64, 65), std::nullopt);
}

TEST(Notices, AnImpossibleLengthIsRefused) {
  const Mapping memory = Mapping::anonymous(sizeof(StreamNotices));
  auto& board = memory.as<StreamNotices>();
  board.failure_bytes = kMaxFailureText + 2;
  EXPECT_THROW(read_failure(board), DataError);
}

TEST(Queue, KeepsOrderWhileItGrows) {
  Queue<int> queue;
  int pushed = 0;
  int popped = 0;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 7; ++i) queue.push(pushed++);
    for (int i = 0; i < 5; ++i) {
      ASSERT_EQ(queue.front(), popped++);
      queue.pop();
    }
  }
  EXPECT_EQ(queue.size(), 100u);
}

}  // namespace
}  // namespace lockstep::transport
