// SPDX-License-Identifier: Apache-2.0
//
// What a tensor lane has of each parameter (docs/algorithms.md, "Tensor lanes"). Pure arithmetic: every rank
// comes to the same result.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/mesh/lanes.h"
#include "lockstep/mesh/range.h"
#include "lockstep/mesh/runs.h"
#include "lockstep/model/parameter_spec.h"
#include "lockstep/model/shard_rule.h"

namespace lockstep::parallel {

// Sizes of a model that lanes divide; no heads: its layers cannot be divided.
struct DividedSizes {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t ffn_width = 0;
};

// UsageError unless `lanes` is a power of two that the number of workers that share a layer divides, and
// heads and widths can be divided among them; the message names the keys of the run file and what would fit.
void check_tensor_lanes(const DividedSizes& sizes, int lanes, int workers);

// What one lane has of a parameter. In the whole parameter its elements are `runs` runs of `length`, the
// first at `first` and each `distance` behind the one before; in the lane they follow each other without
// gaps, and what is left of `shape` is padding: zeros that are never read.
struct LaneShard {
  std::vector<std::int64_t> shape;  // the same for every lane
  std::int64_t first = 0;
  std::int64_t length = 0;
  std::int64_t distance = 0;
  std::int64_t runs = 1;
  // The lanes that have the same elements. The gradient of these elements is the sum over them, in the lane
  // tree.
  Subtree sharing = {};

  std::int64_t elements() const { return runs * length; }  // without padding
};

// The sizes have been checked.
LaneShard shard_of(const model::ParameterSpec& parameter, const model::ShardRule& rule,
                   const DividedSizes& sizes, int lanes, int lane);

// What a worker has of a parameter that is not divided.
LaneShard whole_of(const model::ParameterSpec& parameter);

// Contiguous tensors of the same dtype: of the whole parameter, and of what the lane has, whose padding
// becomes zero.
void take_part(const LaneShard& shard, const at::Tensor& whole, const at::Tensor& part);
// `part` has the elements `which` of what the lane has.
void put_part(const LaneShard& shard, Range which, const at::Tensor& part, const at::Tensor& whole);

// Where the elements `which` of what the lane has are in the whole parameter, in their order; padding is
// nowhere.
std::vector<Runs> runs_of(const LaneShard& shard, Range which);

// The first values of the elements from `first` on of what the lane has: those of the whole parameter
// (model/initial_values.h), and zero for padding.
void initial_part(const model::ParameterSpec& parameter, const LaneShard& shard, std::uint64_t seed,
                  std::size_t first, std::span<float> values);

}  // namespace lockstep::parallel
