// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/model/parameters.h"
#include "lockstep/nn/head_loss.h"
#include "lockstep/parallel/tensor/shards.h"
#include "lockstep/plan/pipeline.h"
#include "lockstep/train/groups.h"
#include "lockstep/train/partition.h"
#include "lockstep/train/tensor_lanes.h"

namespace lockstep::train {

// What of a model a rank holds, and with whom.
struct Holding {
  model::FlatLayout whole;   // of the model, undivided
  model::FlatLayout layout;  // of what is held
  Partition partition;       // of that among the ranks that share it
  Groups groups;
  std::vector<schedule::Chunk> chunks;  // of the blocks that are held
  // Also shared out; then every chunk is a bucket.
  bool shards_gradients = false;
  bool shards_weights = false;
  bool copies_on_hosts = false;         // what is shared out is so inside each host
  const TensorLanes* tensor = nullptr;  // null: layers have one lane

  // What is held of a parameter of the layout, and what it is a part of.
  parallel::LaneShard shard(std::size_t parameter) const;
  const model::ParameterSpec& whole_of(std::size_t parameter) const;
  // Of a micro-batch: by whom its lanes are computed.
  const nn::LaneTeam* team() const { return tensor == nullptr ? nullptr : &tensor->team(); }
  // The head with what the parameters have of it.
  nn::DividedHead head_of(const model::Parameters& parameters) const;
};

struct HoldingOptions {
  std::int64_t bucket_elements = PartitionOptions{}.bucket_elements;
  const TensorLanes* tensor = nullptr;  // must outlive the holding
  int zero_stage = 0;                   // what ranks share out: nothing, the update, gradients, weights too
};

// The part of a stage; all of it when the pipeline has one.
Holding holding_of(const model::Model& model, const plan::PipelinePlan& plan, const Groups& groups,
                   const HoldingOptions& options);

// Of a model that every rank holds all of.
Holding holding_of(const model::Model& model, const comm::Communicator& world, const HoldingOptions& options);

}  // namespace lockstep::train
