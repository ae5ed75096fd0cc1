// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/holding.h"

#include <utility>

#include "lockstep/plan/buckets.h"

namespace lockstep::train {
namespace {

// Of a lane, times those that are held. A head of its own is with the last block.
std::vector<std::int64_t> elements_of_blocks(const model::Model& of_lane, const model::HeldLanes& lanes) {
  const model::FlatLayout layout(of_lane);
  std::vector<std::int64_t> elements;
  for (const auto& segment : layout.segments()) {
    elements.push_back(static_cast<std::int64_t>(segment.elements.size()) * lanes.count);
  }
  const std::int64_t head = elements.back();
  elements.pop_back();
  elements.back() += head;
  return elements;
}

}  // namespace

parallel::LaneShard Holding::shard(std::size_t parameter) const {
  const model::ParameterSpec& spec = layout.specs()[parameter];
  return tensor == nullptr ? parallel::whole_of(spec)
                           : tensor->model().shard(spec.name, layout.lane_of(parameter));
}

const model::ParameterSpec& Holding::whole_of(std::size_t parameter) const {
  const model::ParameterSpec& spec = layout.specs()[parameter];
  return tensor == nullptr ? spec : tensor->model().whole(spec.name);
}

nn::DividedHead Holding::head_of(const model::Parameters& parameters) const {
  return {parameters.heads(), whole.specs()[whole.head()].shape[0]};
}

Holding holding_of(const model::Model& model, const plan::PipelinePlan& plan, const Groups& groups,
                   const HoldingOptions& options) {
  const model::Model& of_lane = options.tensor == nullptr ? model : options.tensor->model().of_lane();
  const model::HeldLanes lanes = options.tensor == nullptr ? model::HeldLanes() : options.tensor->held();
  const bool shares = groups.sharing.size() > 1;
  const bool shards_gradients = shares && options.zero_stage >= 2;
  std::vector<schedule::Chunk> chunks = {{0, static_cast<int>(model.blocks.size())}};
  if (groups.pipeline.size() > 1) {
    chunks = plan::chunks_of(plan, groups.pipeline.rank());
  } else if (shards_gradients) {
    chunks = plan::group_blocks(elements_of_blocks(of_lane, lanes), options.bucket_elements);
  }
  std::vector<Range> runs;
  for (const schedule::Chunk& chunk : chunks) {
    runs.push_back({static_cast<std::size_t>(chunk.first_block), static_cast<std::size_t>(chunk.end_block)});
  }
  model::FlatLayout layout(of_lane, runs, partition_unit(groups.sharing.size()), lanes);
  Partition partition =
      partition_of(layout, {.bucket_elements = shards_gradients ? layout.elements() : options.bucket_elements,
                            .world = groups.sharing.size(),
                            .rank = groups.sharing.rank(),
                            .shards_update = shares && options.zero_stage >= 1});
  return {.whole = model::FlatLayout(model),
          .layout = std::move(layout),
          .partition = std::move(partition),
          .groups = groups,
          .chunks = chunks,
          .shards_gradients = shards_gradients,
          .shards_weights = shares && options.zero_stage >= 3,
          .copies_on_hosts = options.zero_stage >= 1 && groups.copies.size() > 1,
          .tensor = options.tensor};
}

Holding holding_of(const model::Model& model, const comm::Communicator& world,
                   const HoldingOptions& options) {
  return holding_of(model, plan::PipelinePlan{}, {.world = world, .data = world, .sharing = world}, options);
}

}  // namespace lockstep::train
