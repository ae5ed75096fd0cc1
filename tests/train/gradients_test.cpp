// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/gradients.h"

#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "lockstep/model/gpt/model.h"

#include "tests/support/worlds.h"

namespace lockstep::train {
namespace {

// Where a peer finds the memory; none when it does not, although it has heard of all that is registered.
std::optional<transport::Place> place_of(ConstBytes memory, const comm::Communicator& world) {
  const Rank peer = 1 - world.rank();
  const comm::Buffer last = world.allocate(std::size_t{8} << 20);
  while (!world.place_for(peer, last.bytes())) {
    EXPECT_TRUE(world.is_there(peer));
    std::this_thread::yield();
  }
  const std::optional<transport::Place> place = world.place_for(peer, memory);
  world.barrier();
  return place;
}

TEST(GradientSlots, OfSharesThatPeersMayHaveToUpdateAreWhereTheyReadThem) {
  for (const bool has_journal : {true, false}) {
    test::run_ranks(test::make_world("shm", 2), {}, [&](const comm::Communicator& world) {
      const model::Model model = model::gpt::make(
          {.layers = 2, .width = 64, .heads = 2, .ffn_width = 128, .vocabulary = 61, .positions = 9});
      const Holding holding = holding_of(model, world, {.bucket_elements = 10'000, .zero_stage = 2});
      BufferPool pool(world);
      const Weights weights(holding, pool, {.has_journal = has_journal});
      GradientSlots slots(holding, pool, weights);
      ASSERT_GT(holding.partition.buckets.size(), 1U);
      for (std::size_t bucket = 0; bucket < holding.partition.buckets.size(); ++bucket) {
        const std::span<float> share = slots.share(0, bucket);
        EXPECT_EQ(share.size(), holding.partition.own[bucket].size());
        EXPECT_EQ(place_of(std::as_bytes(share), world).has_value(), has_journal) << bucket;
      }
    });
  }
}

}  // namespace
}  // namespace lockstep::train
