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
  Partition partition;       // of that among the data-parallel ranks
  Groups groups;
};

struct HoldingOptions {
  std::int64_t bucket_elements = PartitionOptions{}.bucket_elements;
  bool shards_update = false;
};

// The part of a stage, the whole of it on every stage's data-parallel rank.
Holding holding_of(const model::Model& model, const plan::PipelinePlan& plan, const Groups& groups,
                   const HoldingOptions& options);

// Of a model that every rank holds all of.
Holding holding_of(const model::Model& model, const comm::Communicator& world, const HoldingOptions& options);

}  // namespace lockstep::train
