// SPDX-License-Identifier: Apache-2.0
#include "lockstep/parallel/tensor/shards.h"

#include <algorithm>
#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/model/initial_values.h"
#include "lockstep/nn/lanes.h"

namespace lockstep::parallel {
namespace {

using model::Shard;

// Calls body(elements of the part, where they begin in the whole) for those of `which`, run by run. Padding
// is in no run.
template <typename Body>
void each_run(const LaneShard& shard, Range which, const Body& body) {
  const auto length = static_cast<std::size_t>(shard.length);
  if (length == 0) return;
  const std::size_t end = std::min(which.end, static_cast<std::size_t>(shard.elements()));
  for (std::size_t begin = which.begin; begin < end;) {
    const std::size_t run = begin / length;
    const std::size_t run_end = std::min(end, (run + 1) * length);
    body(Range{begin, run_end}, static_cast<std::size_t>(shard.first) +
                                    run * static_cast<std::size_t>(shard.distance) + (begin - run * length));
    begin = run_end;
  }
}

std::byte* element(const at::Tensor& tensor, std::size_t index) {
  return static_cast<std::byte*>(tensor.data_ptr()) + index * tensor.element_size();
}

void require_alike(const LaneShard& shard, const at::Tensor& whole, const at::Tensor& part) {
  LOCKSTEP_CHECK(whole.is_contiguous() && part.is_contiguous() && whole.scalar_type() == part.scalar_type());
  LOCKSTEP_CHECK(shard.first + (shard.runs - 1) * shard.distance + shard.length <= whole.numel());
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

LaneShard whole_of(const model::ParameterSpec& parameter) {
  return {.shape = parameter.shape,
          .length = parameter.elements(),
          .distance = parameter.elements(),
          .sharing = {0, 1}};
}

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
  require_alike(shard, whole, part);
  part.zero_();
  each_run(shard, {0, static_cast<std::size_t>(part.numel())}, [&](Range run, std::size_t in_whole) {
    std::memcpy(element(part, run.begin), element(whole, in_whole), run.size() * part.element_size());
  });
}

void put_part(const LaneShard& shard, Range which, const at::Tensor& part, const at::Tensor& whole) {
  require_alike(shard, whole, part);
  LOCKSTEP_CHECK(part.numel() == static_cast<std::int64_t>(which.size()));
  each_run(shard, which, [&](Range run, std::size_t in_whole) {
    std::memcpy(element(whole, in_whole), element(part, run.begin - which.begin),
                run.size() * part.element_size());
  });
}

std::vector<Runs> runs_of(const LaneShard& shard, Range which) {
  const auto length = static_cast<std::size_t>(shard.length);
  const auto distance = static_cast<std::size_t>(shard.distance);
  std::vector<Runs> all;
  each_run(shard, which, [&](Range run, std::size_t in_whole) {
    const bool continues = !all.empty() && all.back().length == run.size() && run.size() == length &&
                           all.back().first + all.back().count * distance == in_whole;
    if (continues) {
      all.back().distance = distance;
      ++all.back().count;
    } else {
      all.push_back({.first = in_whole, .length = run.size(), .distance = run.size(), .count = 1});
    }
  });
  return all;
}

void initial_part(const model::ParameterSpec& parameter, const LaneShard& shard, std::uint64_t seed,
                  std::size_t first, std::span<float> values) {
  std::ranges::fill(values, 0.0F);
  each_run(shard, {first, first + values.size()}, [&](Range run, std::size_t in_whole) {
    model::initial_values(parameter, seed, in_whole, values.subspan(run.begin - first, run.size()));
  });
}

}  // namespace lockstep::parallel
