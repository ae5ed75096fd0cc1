// SPDX-License-Identifier: Apache-2.0
//
// Updates that end anywhere, and what a peer makes of what they leave.
#include "lockstep/train/update_journal.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/threads.h"

namespace lockstep::train {
namespace {

using namespace std::chrono_literals;

struct Killed {};

using Copied = JournalReader::Copied;
using State = Copied::State;

// The state of some buckets, with a value of two bytes and one of four for each element.
class Share {
 public:
  Share(const JournalShape& shape, std::uint32_t seed) {
    for (std::size_t bucket = 0; bucket < shape.buckets(); ++bucket) {
      small_.emplace_back(shape.elements(bucket));
      large_.emplace_back(shape.elements(bucket));
      for (std::size_t i = 0; i < shape.elements(bucket); ++i) {
        small_[bucket][i] = static_cast<std::uint16_t>(seed * (i + 3));
        large_[bucket][i] = seed + static_cast<std::uint32_t>(i * i);
      }
    }
  }

  ShareArrays arrays(std::size_t bucket) {
    return {std::as_writable_bytes(std::span(small_[bucket])),
            std::as_writable_bytes(std::span(large_[bucket]))};
  }
  ConstShareArrays const_arrays(std::size_t bucket) {
    const ShareArrays all = arrays(bucket);
    return {all.begin(), all.end()};
  }

  // What the values become depends on what they were: twice is not once.
  void update(std::size_t bucket, Range elements) {
    for (std::size_t i = elements.begin; i < elements.end; ++i) {
      small_[bucket][i] = static_cast<std::uint16_t>(small_[bucket][i] * 3 + 1);
      large_[bucket][i] = large_[bucket][i] * 5 + small_[bucket][i];
    }
  }
  void update_all() {
    for (std::size_t bucket = 0; bucket < small_.size(); ++bucket) update(bucket, {0, small_[bucket].size()});
  }
  void flip(std::size_t bucket, std::size_t element) { large_[bucket][element] ^= 1U << 13; }

  bool has_same(const Share& other, std::size_t bucket) const {
    return small_[bucket] == other.small_[bucket] && large_[bucket] == other.large_[bucket];
  }
  bool operator==(const Share&) const = default;

 private:
  std::vector<std::vector<std::uint16_t>> small_;
  std::vector<std::vector<std::uint32_t>> large_;
};

class UpdateJournals : public ::testing::TestWithParam<int> {
 protected:
  UpdateJournals() {
    kernels::set_threads(GetParam());
    begin();
  }
  ~UpdateJournals() override { kernels::set_threads(1); }

  void begin() {
    std::vector<ShareArrays> buckets;
    for (std::size_t bucket = 0; bucket < shape_.buckets(); ++bucket)
      buckets.push_back(share_.arrays(bucket));
    journal_.begin(buckets);
  }

  // `stop(bucket, chunk, half)` is asked before a chunk is updated, and after half of it is.
  template <typename Stop>
  void update(const Stop& stop) {
    journal_.begin_update();
    for (std::size_t bucket = 0; bucket < shape_.buckets(); ++bucket) {
      journal_.update(bucket, share_.arrays(bucket), [&](Range elements) {
        const std::size_t chunk = elements.begin / shape_.chunk();
        if (stop(bucket, chunk, false)) throw Killed();
        const std::size_t half = elements.begin + (elements.size() + 1) / 2;
        share_.update(bucket, {elements.begin, half});
        if (stop(bucket, chunk, true)) throw Killed();
        share_.update(bucket, {half, elements.end});
      });
    }
  }
  void update() {
    update([](auto...) { return false; });
  }

  // What a peer gets; none when it must not trust it.
  std::optional<Share> read(std::uint64_t update) {
    const JournalReader reader(shape_, journal_.memory());
    Share copy(shape_, 99);
    for (std::size_t bucket = 0; bucket < shape_.buckets(); ++bucket) {
      const Copied copied = reader.copy(bucket, reader.progress(bucket), update, share_.const_arrays(bucket),
                                        copy.arrays(bucket));
      problem_ = copied.state;
      if (problem_ != State::whole) return std::nullopt;
      copy.update(bucket, {copied.first, shape_.elements(bucket)});
    }
    return copy;
  }

  bool is_intact() {
    for (std::size_t bucket = 0; bucket < shape_.buckets(); ++bucket) {
      if (!journal_.is_intact(bucket, share_.const_arrays(bucket))) return false;
    }
    return true;
  }

  comm::Communicator alone_;
  const std::size_t chunk_ = JournalShape::chunk_for(GetParam());
  // None, one, one more than some chunks, whole chunks.
  JournalShape shape_{{0, 1, 3 * chunk_ + 1, 2 * chunk_}, {2, 4}, chunk_};
  UpdateJournal journal_{shape_, alone_.allocate(shape_.bytes())};
  Share share_{shape_, 7};
  State problem_ = State::whole;  // of what was read last
};

INSTANTIATE_TEST_SUITE_P(Threads, UpdateJournals, ::testing::Values(1, 2, 3));

TEST_P(UpdateJournals, AnUpdateThatEndsAnywhereIsEndedByItsReader) {
  const Share first = share_;
  Share third = share_;
  for (int i = 0; i < 3; ++i) third.update_all();
  int places = 0;
  for (std::size_t bucket = 0; bucket < shape_.buckets(); ++bucket) {
    for (std::size_t chunk = 0; chunk < shape_.chunks(bucket); ++chunk) {
      for (const bool in_between : {false, true}) {
        share_ = first;
        begin();
        update();
        update();
        const auto stop = [&](std::size_t in_bucket, std::size_t in_chunk, bool half) {
          return in_bucket == bucket && in_chunk == chunk && half == in_between;
        };
        EXPECT_THROW(update(stop), Killed);
        EXPECT_TRUE(read(3) == third)
            << "bucket " << bucket << ", chunk " << chunk << ", half " << in_between;
        ++places;
      }
    }
  }
  EXPECT_EQ(places, 2 * (1 + 4 + 2));
}

TEST_P(UpdateJournals, OneThatHasNotBegunIsMadeByItsReader) {
  Share expected = share_;
  EXPECT_TRUE(read(0) == expected);
  expected.update_all();
  EXPECT_TRUE(read(1) == expected);
  update();
  EXPECT_TRUE(share_ == expected);
  EXPECT_TRUE(read(1) == expected);
  expected.update_all();
  EXPECT_TRUE(read(2) == expected);
}

TEST_P(UpdateJournals, OnlyOneUpdateCanBeMissing) {
  update();
  update();
  EXPECT_FALSE(read(1));
  EXPECT_EQ(problem_, State::of_another_update);
  EXPECT_FALSE(read(4));
  EXPECT_EQ(problem_, State::of_another_update);
  EXPECT_THROW(update([](std::size_t bucket, auto...) { return bucket == 2; }), Killed);
  EXPECT_TRUE(read(3));
  EXPECT_FALSE(read(4)) << "the one before is not complete";
  EXPECT_FALSE(read(2));
}

TEST_P(UpdateJournals, ABitThatChangesIsFoundEvenAfterLaterUpdates) {
  update();
  EXPECT_TRUE(is_intact());
  share_.flip(2, chunk_ + 5);
  EXPECT_FALSE(is_intact());
  EXPECT_FALSE(read(1));
  EXPECT_FALSE(read(2));
  EXPECT_EQ(problem_, State::changed);
  for (int i = 0; i < 3; ++i) update();
  EXPECT_FALSE(is_intact());
  EXPECT_FALSE(read(4));
  EXPECT_EQ(problem_, State::changed);
}

TEST_P(UpdateJournals, ABitThatChangesInWhatIsSavedIsFound) {
  EXPECT_THROW(update([](std::size_t bucket, std::size_t chunk, bool half) {
                 return bucket == 2 && chunk == 1 && half;
               }),
               Killed);
  EXPECT_TRUE(read(1));
  const_cast<std::byte*>(journal_.memory().data())[shape_.undo(1) + 8] ^= std::byte{4};
  EXPECT_FALSE(read(1));
}

TEST_P(UpdateJournals, WhatIsBegunAnewIsTrusted) {
  update();
  share_.flip(3, 0);
  begin();
  EXPECT_TRUE(is_intact());
  EXPECT_TRUE(read(0) == share_);
  update();
  EXPECT_TRUE(is_intact());
}

TEST_P(UpdateJournals, NonsenseForProgressIsNotFollowed) {
  const JournalReader reader(shape_, journal_.memory());
  Share copy(shape_, 1);
  for (const std::uint64_t word : {~std::uint64_t{0}, std::uint64_t{1} << 31, std::uint64_t{1} << 63}) {
    EXPECT_NE(reader.copy(2, word, word >> 32, share_.const_arrays(2), copy.arrays(2)).state, State::whole)
        << word;
  }
}

// Memory that was taken and not written yet, or was given back and is used for something else.
TEST_P(UpdateJournals, OneThatWasNeverBegunIsNotFollowed) {
  const UpdateJournal zeros(shape_, alone_.allocate(shape_.bytes()));
  const JournalReader reader(shape_, zeros.memory());
  Share share(shape_, 7);
  Share copy(shape_, 1);
  for (std::size_t bucket = 1; bucket < shape_.buckets(); ++bucket) {
    for (const Bytes array : share.arrays(bucket)) std::ranges::fill(array, std::byte{0});
    for (const std::uint64_t update : {0U, 1U, 2U}) {
      EXPECT_EQ(
          reader
              .copy(bucket, reader.progress(bucket), update, share.const_arrays(bucket), copy.arrays(bucket))
              .state,
          State::of_another_update)
          << "bucket " << bucket << ", update " << update;
    }
    EXPECT_FALSE(zeros.is_intact(bucket, share.const_arrays(bucket)));
  }
}

TEST_P(UpdateJournals, EveryBucketIsUpdatedOnce) {
  update();
  EXPECT_THROW(journal_.update(1, share_.arrays(1), [](Range) {}), InternalError) << "a second time";
  journal_.begin_update();
  journal_.begin_update();
  EXPECT_THROW(journal_.update(1, share_.arrays(1), [](Range) {}), InternalError) << "after none";
}

// What a peer reads of one that lives is of one moment, or it reads again.
TEST_P(UpdateJournals, OneThatGoesOnIsReadAsItWasInOneMoment) {
  constexpr std::size_t kBucket = 2;
  constexpr int kReads = 50;  // of each kind: in the midst of an update, and between two
  Share expected = share_;
  std::uint64_t of_expected = 0;
  std::atomic<bool> is_read_enough = false;
  // Rests where the bucket is half updated, and where it is not, so that either is seen.
  const auto rest = [](std::size_t bucket, std::size_t chunk, bool half) {
    if ((bucket == kBucket && chunk == 1 && half) || bucket > kBucket) std::this_thread::sleep_for(100us);
    return false;
  };
  std::jthread owner([&] {
    while (!is_read_enough) update(rest);
  });
  const JournalReader reader(shape_, journal_.memory());
  Share copy(shape_, 99);
  int in_the_midst = 0;
  int in_between = 0;
  while (in_the_midst < kReads || in_between < kReads) {
    std::uint64_t update = 0;
    Copied copied;
    const bool is_of_one_moment = reader.in_one_moment(kBucket, 1h, [&](std::uint64_t progress) {
      update = progress >> 32;
      copied = reader.copy(kBucket, progress, update, share_.const_arrays(kBucket), copy.arrays(kBucket));
    });
    for (; of_expected < update; ++of_expected) expected.update(kBucket, {0, shape_.elements(kBucket)});
    copy.update(kBucket, {copied.first, shape_.elements(kBucket)});
    const bool is_right =
        is_of_one_moment && copied.state == State::whole && copy.has_same(expected, kBucket);
    EXPECT_TRUE(is_right) << "update " << update;
    if (!is_right) break;
    if (update > 0) ++(copied.first < shape_.elements(kBucket) ? in_the_midst : in_between);
  }
  is_read_enough = true;
}

// However long that takes: only an owner that moves has a limit, and each bucket one of its own.
TEST_P(UpdateJournals, OneAtRestIsReadWithoutALimit) {
  const JournalReader reader(shape_, journal_.memory());
  for (std::size_t bucket = 0; bucket < shape_.buckets(); ++bucket) {
    int times = 0;
    EXPECT_TRUE(reader.in_one_moment(bucket, 0s, [&](std::uint64_t progress) {
      EXPECT_EQ(progress, reader.progress(bucket));
      ++times;
    }));
    EXPECT_EQ(times, 1);
  }
}

TEST_P(UpdateJournals, OneThatMovesIsReadAgainForALimitedTime) {
  const JournalReader reader(shape_, journal_.memory());
  int times = 0;
  const auto while_it_moves = [&](int updates) {
    times = 0;
    return [this, &times, updates](std::uint64_t) {
      if (times++ < updates) update();
    };
  };
  EXPECT_TRUE(reader.in_one_moment(2, 1h, while_it_moves(3)));
  EXPECT_EQ(times, 4);
  EXPECT_FALSE(reader.in_one_moment(2, 0s, while_it_moves(3)));
  EXPECT_EQ(times, 1);
}

TEST_P(UpdateJournals, PlacesOfGradientsAreRead) {
  journal_.set_gradients(1, {.segment = 3, .offset = 4096});
  journal_.set_gradients(3, {.segment = 1, .offset = 64});
  update();
  const JournalReader reader(shape_, journal_.memory());
  EXPECT_EQ(reader.gradients(1).segment, 3U);
  EXPECT_EQ(reader.gradients(1).offset, 4096U);
  EXPECT_EQ(reader.gradients(3).segment, 1U);
  EXPECT_EQ(reader.gradients(3).offset, 64U);
}

}  // namespace
}  // namespace lockstep::train
