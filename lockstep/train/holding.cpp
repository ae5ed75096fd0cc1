// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/holding.h"

namespace lockstep::train {

Holding holding_of(const model::Model& model, const plan::PipelinePlan& plan, const Groups& groups,
                   const HoldingOptions& options) {
  std::vector<Range> chunks;
  for (const schedule::Chunk& chunk : plan::chunks_of(plan, groups.pipeline.rank())) {
    chunks.push_back(
        {static_cast<std::size_t>(chunk.first_block), static_cast<std::size_t>(chunk.end_block)});
  }
  Holding holding = {.whole = model::FlatLayout(model),
                     .layout = model::FlatLayout(model, chunks, partition_unit(groups.data.size())),
                     .partition = {},
                     .groups = groups};
  holding.partition = partition_of(holding.layout, {.bucket_elements = options.bucket_elements,
                                                    .world = groups.data.size(),
                                                    .rank = groups.data.rank(),
                                                    .shards_update = options.shards_update});
  return holding;
}

Holding holding_of(const model::Model& model, const comm::Communicator& world,
                   const HoldingOptions& options) {
  const plan::PipelinePlan plan = {
      .placement = {}, .parts = {{0, static_cast<int>(model.blocks.size())}}, .schedule = {}};
  return holding_of(model, plan, {.world = world, .data = world}, options);
}

}  // namespace lockstep::train
