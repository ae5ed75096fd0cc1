// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/model/parameters.h"
#include "lockstep/plan/pipeline.h"
#include "lockstep/train/groups.h"
#include "lockstep/train/partition.h"

namespace lockstep::train {

// What of a model a rank holds, and with whom.
struct Holding {
  model::FlatLayout whole;   // of the model
  model::FlatLayout layout;  // of what is held
  Partition partition;       // of that among the ranks that share it
  Groups groups;
  std::vector<schedule::Chunk> chunks;  // of the blocks that are held
  // Also shared out; then every chunk is a bucket.
  bool shards_gradients = false;
  bool shards_weights = false;
  bool copies_on_hosts = false;  // what is shared out is so inside each host
};

struct HoldingOptions {
  std::int64_t bucket_elements = PartitionOptions{}.bucket_elements;
  int zero_stage = 0;  // what ranks share out: nothing, the update, gradients, weights too
};

// The part of a stage; all of it when the pipeline has one.
Holding holding_of(const model::Model& model, const plan::PipelinePlan& plan, const Groups& groups,
                   const HoldingOptions& options);

// Of a model that every rank holds all of.
Holding holding_of(const model::Model& model, const comm::Communicator& world, const HoldingOptions& options);

}  // namespace lockstep::train
