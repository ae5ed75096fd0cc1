// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/partition.h"

#include <gtest/gtest.h>

#include "lockstep/kernels/compute/update/vectors.h"
#include "lockstep/model/gpt/model.h"

namespace lockstep::train {
namespace {

model::Model small_model() {
  return model::gpt::make({.layers = 3, .width = 40, .heads = 4, .vocabulary = 301, .positions = 16});
}

TEST(Partition, SharesOfAllRanksCoverEveryElementOnceAndKeepBlocksOfSquaresWhole) {
  const model::Model model = small_model();
  const model::FlatLayout layout(model);
  for (int world : {1, 2, 3, 5, 8}) {
    for (std::int64_t elements : {std::int64_t{1}, std::int64_t{20'000}, std::int64_t{1} << 40}) {
      std::vector<int> owners;
      for (Rank rank = 0; rank < world; ++rank) {
        const Partition partition = partition_of(
            layout, {.bucket_elements = elements, .world = world, .rank = rank, .shards_update = true});
        ASSERT_GE(partition.elements, static_cast<std::size_t>(layout.elements()));
        ASSERT_LT(partition.elements - static_cast<std::size_t>(layout.elements()),
                  static_cast<std::size_t>(world) * kernels::kSquaresBlock);
        owners.resize(partition.elements);
        for (const Range& own : partition.own) {
          EXPECT_EQ(own.begin % kernels::kSquaresBlock, 0U);
          EXPECT_EQ(own.end % kernels::kSquaresBlock, 0U);
          for (std::size_t i = own.begin; i < own.end; ++i) ++owners[i];
        }
      }
      EXPECT_EQ(std::ranges::count(owners, 1), static_cast<std::ptrdiff_t>(owners.size()));
    }
  }
}

TEST(Partition, WithoutSharesEveryRankUpdatesAll) {
  const model::Model model = small_model();
  const model::FlatLayout layout(model);
  const Partition partition = partition_of(layout, {.bucket_elements = 5000, .world = 4, .rank = 2});
  ASSERT_GT(partition.buckets.size(), 1U);
  for (std::size_t i = 0; i < partition.buckets.size(); ++i) {
    EXPECT_EQ(partition.own[i], partition.buckets[i].elements);
  }
}

TEST(Partition, ABucketWaitsForTheLastBlockThatAddsToIt) {
  const model::Model model = small_model();
  const model::FlatLayout layout(model);
  const Partition partition = partition_of(layout, {.bucket_elements = 1});
  for (const Bucket& bucket : partition.buckets) {
    for (std::size_t block = 0; block < layout.blocks(); ++block) {
      for (std::size_t parameter : layout.of_block(block)) {
        const auto [first, count] = layout.places()[parameter];
        const Range place = {static_cast<std::size_t>(first), static_cast<std::size_t>(first + count)};
        if (overlap(place, bucket.elements)) {
          EXPECT_LE(bucket.block, static_cast<int>(block));
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::train
