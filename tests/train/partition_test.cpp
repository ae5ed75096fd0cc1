// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/partition.h"

#include <gtest/gtest.h>

#include "lockstep/kernels/compute/update/vectors.h"
#include "lockstep/model/gpt/model.h"
#include "lockstep/model/llama/model.h"

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

TEST(BackwardOrder, BeginsWithTheLastBlockAndEndsWithTheEmbedding) {
  const model::Model tied = small_model();
  const model::FlatLayout layout(tied);
  const std::vector<std::size_t> order = backward_order(layout);
  ASSERT_EQ(order.size(), layout.specs().size());
  EXPECT_EQ(layout.specs()[order.front()].name, "ln_f.weight");
  EXPECT_EQ(layout.specs()[order[2]].name, "h.2.ln_1.weight");
  EXPECT_EQ(layout.specs()[order[order.size() - 2]].name, "wte.weight")
      << "also the head's, but used last here";
  const model::Model untied = model::llama::make({.layers = 2,
                                                  .width = 16,
                                                  .heads = 2,
                                                  .kv_heads = 2,
                                                  .head_width = 8,
                                                  .ffn_width = 32,
                                                  .vocabulary = 61,
                                                  .positions = 8,
                                                  .tied = false});
  const model::FlatLayout with_head(untied);
  EXPECT_EQ(with_head.specs()[backward_order(with_head).front()].name, "lm_head.weight");
}

TEST(Partition, AParameterThatFillsSeveralBucketsIsCut) {
  const model::Model model = small_model();
  const model::FlatLayout layout(model);
  const Partition partition = partition_of(layout, {.bucket_elements = 4096});
  // Of 301 x 40 elements.
  EXPECT_EQ(partition.buckets[0].elements, (Range{0, 4096}));
  for (const Bucket& bucket : partition.buckets) EXPECT_LE(bucket.elements.size(), 2 * 4096U);
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
