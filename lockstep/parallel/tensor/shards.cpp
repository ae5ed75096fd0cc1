// SPDX-License-Identifier: Apache-2.0
#include "lockstep/parallel/tensor/shards.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/model/initial_values.h"
#include "lockstep/nn/lanes.h"

namespace lockstep::parallel {
namespace {

using model::Shard;

// Elements of `tensor` as the runs of the shard.
at::Tensor runs_in_whole(const LaneShard& shard, const at::Tensor& whole) {
  LOCKSTEP_CHECK(whole.is_contiguous() &&
                 shard.first + (shard.runs - 1) * shard.distance + shard.length <= whole.numel());
  return whole.view({-1}).as_strided({shard.runs, shard.length}, {shard.distance, 1},
                                     whole.storage_offset() + shard.first);
}

at::Tensor runs_in_part(const LaneShard& shard, const at::Tensor& part) {
  LOCKSTEP_CHECK(part.is_contiguous() && shard.elements() <= part.numel());
  return part.view({-1}).narrow(0, 0, shard.elements()).view({shard.runs, shard.length});
}

LaneShard whole_of(const model::ParameterSpec& parameter) {
  return {.shape = parameter.shape, .length = parameter.elements(), .distance = parameter.elements()};
}

// Each of `parts` that stand one after the other in the first dimension, cut into `pieces`, of which the lane
// has number `piece`.
LaneShard by_rows(const model::ParameterSpec& parameter, int parts, std::int64_t pieces, std::int64_t piece) {
  LaneShard shard = whole_of(parameter);
  LOCKSTEP_CHECK(shard.shape[0] % (parts * pieces) == 0, parameter.name + " is not divisible");
  shard.shape[0] /= pieces;
  shard.runs = parts;
  shard.distance = parameter.elements() / parts;
  shard.length = shard.distance / pieces;
  shard.first = piece * shard.length;
  return shard;
}

LaneShard by_columns(const model::ParameterSpec& parameter, int parts, std::int64_t pieces,
                     std::int64_t piece) {
  LaneShard shard = whole_of(parameter);
  LOCKSTEP_CHECK(shard.shape.size() == 2 && shard.shape[1] % (parts * pieces) == 0,
                 parameter.name + " is not divisible");
  shard.distance = shard.shape[1] / parts;
  shard.runs = shard.shape[0] * parts;
  shard.length = shard.distance / pieces;
  shard.first = piece * shard.length;
  shard.shape[1] /= pieces;
  return shard;
}

LaneShard by_vocabulary(const model::ParameterSpec& parameter, int lanes, int lane) {
  LaneShard shard = whole_of(parameter);
  const std::int64_t row = parameter.elements() / parameter.shape[0];
  const nn::LaneRun run = nn::lane_run(parameter.shape[0], lanes, lane);
  shard.shape[0] = nn::lane_run(parameter.shape[0], lanes, 0).count;
  shard.first = run.first * row;
  shard.length = run.count * row;
  return shard;
}

}  // namespace

LaneShard shard_of(const model::ParameterSpec& parameter, const model::ShardRule& rule,
                   const DividedSizes& sizes, int lanes, int lane) {
  LaneShard shard;
  switch (rule.shard) {
    case Shard::replicated:
      shard = whole_of(parameter);
      shard.sharing = {0, lanes};
      return shard;
    case Shard::rows:
    case Shard::heads:
      shard = by_rows(parameter, rule.parts, lanes, lane);
      break;
    case Shard::columns:
    case Shard::head_columns:
      shard = by_columns(parameter, rule.parts, lanes, lane);
      break;
    case Shard::vocabulary:
      shard = by_vocabulary(parameter, lanes, lane);
      break;
    case Shard::kv_heads: {
      // Lanes that are more than the heads have one head together.
      const int together =
          std::max(1, lanes / static_cast<int>(std::min<std::int64_t>(sizes.kv_heads, lanes)));
      shard = by_rows(parameter, rule.parts, lanes / together, lane / together);
      shard.sharing = {lane / together * together, together};
      return shard;
    }
  }
  shard.sharing = {lane, 1};
  return shard;
}

void take_part(const LaneShard& shard, const at::Tensor& whole, const at::Tensor& part) {
  runs_in_part(shard, part).copy_(runs_in_whole(shard, whole));
  part.view({-1}).narrow(0, shard.elements(), part.numel() - shard.elements()).zero_();
}

void put_part(const LaneShard& shard, const at::Tensor& part, const at::Tensor& whole) {
  runs_in_whole(shard, whole).copy_(runs_in_part(shard, part));
}

void initial_part(const model::ParameterSpec& parameter, const LaneShard& shard, std::uint64_t seed,
                  std::span<float> values) {
  LOCKSTEP_CHECK(shard.elements() <= static_cast<std::int64_t>(values.size()));
  const auto length = static_cast<std::size_t>(shard.length);
  for (std::int64_t run = 0; run < shard.runs; ++run) {
    model::initial_values(parameter, seed, static_cast<std::size_t>(shard.first + run * shard.distance),
                          values.subspan(static_cast<std::size_t>(run) * length, length));
  }
  std::ranges::fill(values.subspan(static_cast<std::size_t>(shard.elements())), 0.0F);
}

}  // namespace lockstep::parallel
