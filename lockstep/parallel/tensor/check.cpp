// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/error.h"
#include "lockstep/parallel/tensor/shards.h"

namespace lockstep::parallel {
namespace {

std::vector<std::int64_t> powers_up_to(std::int64_t limit) {
  std::vector<std::int64_t> powers;
  for (std::int64_t power = 1; power <= limit; power *= 2) powers.push_back(power);
  return powers;
}

// The key to change, and to what, so that there are at most so many lanes.
std::string fewer(std::int64_t lanes, int workers) {
  return fmt::format("{} = {}", workers > lanes ? "parallelism.tensor" : "parallelism.tensor_lanes", lanes);
}

void check_divisible(const char* key, std::int64_t size, int lanes, int workers) {
  if (size % lanes == 0) return;
  const std::int64_t above = (size / lanes + 1) * lanes;
  const std::string sizes =
      size > lanes ? fmt::format("{} or {}", above - lanes, above) : fmt::format("{}", above);
  throw UsageError(
      fmt::format("{} = {} cannot be divided among parallelism.tensor_lanes = {}; take {} = {}, or {}", key,
                  size, lanes, key, sizes, fewer(size & -size, workers)));
}

bool kv_heads_fit(std::int64_t kv_heads, int lanes) {
  return kv_heads % lanes == 0 || lanes % kv_heads == 0;
}

void check_kv_heads(const DividedSizes& sizes, int lanes) {
  if (kv_heads_fit(sizes.kv_heads, lanes)) return;
  std::vector<std::int64_t> fitting;
  for (std::int64_t count = 1; count <= sizes.heads; ++count) {
    if (sizes.heads % count == 0 && kv_heads_fit(count, lanes)) fitting.push_back(count);
  }
  throw UsageError(
      fmt::format("model.kv_heads = {} and parallelism.tensor_lanes = {}: one must divide the other; take "
                  "model.kv_heads = {}",
                  sizes.kv_heads, lanes, fmt::join(fitting, " or ")));
}

}  // namespace

void check_tensor_lanes(const DividedSizes& sizes, int lanes, int workers) {
  if (workers >= 1 && !std::has_single_bit(static_cast<unsigned>(workers))) {
    const auto power = static_cast<int>(std::bit_floor(static_cast<unsigned>(workers)));
    throw UsageError(fmt::format("parallelism.tensor = {} must be a power of two: take {} or {}", workers,
                                 power, 2 * power));
  }
  if (lanes < 1 || !std::has_single_bit(static_cast<unsigned>(lanes))) {
    throw UsageError(
        fmt::format("parallelism.tensor_lanes = {} must be a power of two (1, 2, 4, ...)", lanes));
  }
  if (workers < 1 || lanes % workers != 0) {
    throw UsageError(
        fmt::format("parallelism.tensor = {} does not divide parallelism.tensor_lanes = {}; take {}", workers,
                    lanes, fmt::join(powers_up_to(lanes), " or ")));
  }
  if (lanes == 1) return;
  if (sizes.heads == 0) {
    throw UsageError(
        fmt::format("parallelism.tensor_lanes = {}: the layers of this model cannot be divided; take {}",
                    lanes, fewer(1, workers)));
  }
  check_divisible("model.heads", sizes.heads, lanes, workers);
  check_divisible("model.ffn_width", sizes.ffn_width, lanes, workers);
  check_kv_heads(sizes, lanes);
}

}  // namespace lockstep::parallel
