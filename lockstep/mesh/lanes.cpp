// SPDX-License-Identifier: Apache-2.0
#include "lockstep/mesh/lanes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

constexpr int kLargestPowerOfTwo = 1 << 30;

void require_lanes(int lanes) {
  if (lanes >= 1 && std::has_single_bit(static_cast<unsigned>(lanes))) return;
  throw UsageError(fmt::format("lanes must be a power of two (1, 2, 4, ...), not {}{}", lanes,
                               lanes > 1 && lanes <= kLargestPowerOfTwo
                                   ? fmt::format("; the next one is {}", round_up_to_power_of_two(lanes))
                                   : ""));
}

LaneOwnership from_counts(std::span<const int> counts) {
  LaneOwnership ownership{.first_lane = {0}};
  for (const int count : counts) ownership.first_lane.push_back(ownership.first_lane.back() + count);
  return ownership;
}

// Weights as integers in proportion, so that shares and remainders are exact and no rounding can hand out a
// lane too many. The heaviest becomes 2^30: with fewer than 2^31 lanes a product fits 64 bits.
std::vector<std::uint64_t> integer_weights(const std::vector<double>& weights) {
  double heaviest = 0;
  for (std::size_t rank = 0; rank < weights.size(); ++rank) {
    if (!std::isfinite(weights[rank]) || weights[rank] < 0) {
      throw UsageError(fmt::format("the lane weight of rank {} must be a finite number, 0 or more, not {}",
                                   rank, weights[rank]));
    }
    heaviest = std::max(heaviest, weights[rank]);
  }
  if (heaviest == 0) throw UsageError("all lane weights are zero; give at least one rank a positive weight");
  std::vector<std::uint64_t> scaled;
  scaled.reserve(weights.size());
  for (const double weight : weights) {
    scaled.push_back(static_cast<std::uint64_t>(std::llround(std::ldexp(weight / heaviest, 30))));
  }
  return scaled;
}

}  // namespace

LaneOwnership even_ownership(int lanes, int world) {
  require_lanes(lanes);
  if (world < 1) throw UsageError(fmt::format("lanes need at least one rank to own them, not {}", world));
  std::vector<int> counts(static_cast<std::size_t>(world), lanes / world);
  for (int rank = 0; rank < lanes % world; ++rank) ++counts[rank];
  return from_counts(counts);
}

LaneOwnership weighted_ownership(int lanes, const std::vector<double>& weights) {
  require_lanes(lanes);
  if (weights.empty()) throw UsageError("lanes need at least one rank to own them; no weights were given");
  const std::vector<std::uint64_t> scaled = integer_weights(weights);
  const std::uint64_t total = std::accumulate(scaled.begin(), scaled.end(), std::uint64_t{0});
  LOCKSTEP_CHECK(total > 0, "the heaviest weight became zero");

  std::vector<int> counts;
  std::vector<std::uint64_t> remainders;
  int left = lanes;
  for (const std::uint64_t weight : scaled) {
    const std::uint64_t share = weight * static_cast<std::uint64_t>(lanes);
    counts.push_back(static_cast<int>(share / total));
    remainders.push_back(share % total);
    left -= counts.back();
  }

  std::vector<std::size_t> by_remainder(weights.size());
  std::iota(by_remainder.begin(), by_remainder.end(), std::size_t{0});
  std::ranges::stable_sort(by_remainder, std::greater<>(),
                           [&](std::size_t rank) { return remainders[rank]; });
  for (int extra = 0; extra < left; ++extra) ++counts[by_remainder[extra]];
  return from_counts(counts);
}

std::vector<Subtree> complete_subtrees(int first, int end) {
  if (first < 0 || end < first || end > kLargestPowerOfTwo) {
    throw UsageError(fmt::format("[{}, {}) is not a run of lanes", first, end));
  }
  std::vector<Subtree> subtrees;
  while (first < end) {
    const unsigned fits = std::bit_floor(static_cast<unsigned>(end - first));
    const unsigned aligned = first == 0 ? fits : 1U << std::countr_zero(static_cast<unsigned>(first));
    subtrees.push_back({.first = first, .count = static_cast<int>(std::min(fits, aligned))});
    first = subtrees.back().end();
  }
  return subtrees;
}

int round_up_to_power_of_two(int value) {
  if (value < 1 || value > kLargestPowerOfTwo) {
    throw UsageError(
        fmt::format("cannot round {} up to a power of two: it must be 1 to {}", value, kLargestPowerOfTwo));
  }
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(value)));
}

}  // namespace lockstep
