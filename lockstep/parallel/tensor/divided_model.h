// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/model/block.h"
#include "lockstep/model/parameters.h"
#include "lockstep/model/shard_rule.h"
#include "lockstep/parallel/tensor/shards.h"

namespace lockstep::parallel {

// A model as tensor lanes see it.
class DividedModel {
 public:
  // `whole` and `rules` must outlive it. UsageError when the sizes cannot be divided among so many lanes.
  DividedModel(const model::Model& whole, std::span<const model::ShardRule> rules, const DividedSizes& sizes,
               int lanes);

  int lanes() const { return lanes_; }

  // What one lane has: blocks compute as those of the whole model do, and declare their parameters in the
  // shape that a lane has. First values are those of the whole parameters: see initial_part().
  const model::Model& of_lane() const { return of_lane_; }

  // For a FlatLayout of lanes [first, first + count) of it; this must outlive the construction.
  model::HeldLanes held(int first, int count) const;

  const model::ParameterSpec& whole(std::string_view parameter) const;
  LaneShard shard(std::string_view parameter, int lane) const;
  // How many lanes have what one of them has of a parameter.
  int sharing(std::string_view parameter) const { return shard(parameter, 0).sharing.count; }

 private:
  model::ParameterSpec in_lane(const model::ParameterSpec& spec) const;

  std::span<const model::ShardRule> rules_;
  DividedSizes sizes_;
  int lanes_;
  std::map<std::string, model::ParameterSpec, std::less<>> specs_;  // of the whole model
  model::Model of_lane_;
};

}  // namespace lockstep::parallel
