// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "lockstep/comm/communicator.h"
#include "lockstep/model/block.h"
#include "lockstep/model/shard_rule.h"
#include "lockstep/nn/lanes.h"
#include "lockstep/parallel/tensor/divided_model.h"
#include "lockstep/parallel/tensor/shards.h"
#include "lockstep/parallel/tensor/shared_gradients.h"
#include "lockstep/parallel/tensor/team.h"

namespace lockstep::train {

// How the layers of a model can be divided.
struct Division {
  std::span<const model::ShardRule> rules;
  parallel::DividedSizes sizes;
};

// A model whose layers are computed in several lanes, by the ranks of a group together.
class TensorLanes {
 public:
  struct Options {
    int lanes = 1;                // a power of two that the size of the group divides
    bool divides_tokens = false;  // sequence parallelism
  };
  // All ranks of the group make theirs together. `model` must outlive it. UsageError when its layers cannot
  // be divided so.
  TensorLanes(const model::Model& model, const Division& division, const comm::Communicator& group,
              const Options& options);
  TensorLanes(const TensorLanes&) = delete;
  TensorLanes& operator=(const TensorLanes&) = delete;

  const parallel::DividedModel& model() const { return model_; }
  const nn::LaneTeam& team() const { return team_; }
  const parallel::SharedGradients& shared() const { return shared_; }
  // Those that are computed here.
  model::HeldLanes held() const { return model_.held(team_.share().first, team_.share().count); }

 private:
  parallel::DividedModel model_;
  parallel::TensorTeam team_;
  parallel::SharedGradients shared_;
};

}  // namespace lockstep::train
