// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/rebalance.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace lockstep::train {
namespace {

constexpr double kWorthwhile = 0.95;  // of the time before

// In lanes per second.
std::vector<double> speeds_of(const LaneOwnership& lanes, std::span<const double> seconds) {
  std::vector<double> speeds;
  double measured = 0;
  int ranks = 0;
  for (Rank rank = 0; rank < lanes.world(); ++rank) {
    const double taken = seconds[static_cast<std::size_t>(rank)];
    speeds.push_back(taken > 0 ? lanes.count_of(rank) / taken : 0.0);
    measured += speeds.back();
    ranks += speeds.back() > 0 ? 1 : 0;
  }
  const double average = ranks > 0 ? measured / ranks : 1.0;
  std::ranges::replace(speeds, 0.0, average);
  return speeds;
}

double slowest(const LaneOwnership& lanes, const std::vector<double>& speeds) {
  double most = 0;
  for (Rank rank = 0; rank < lanes.world(); ++rank) {
    most = std::max(most, lanes.count_of(rank) / speeds[static_cast<std::size_t>(rank)]);
  }
  return most;
}

}  // namespace

LaneOwnership rebalanced(const LaneOwnership& lanes, std::span<const double> seconds) {
  const std::vector<double> speeds = speeds_of(lanes, seconds);
  LaneOwnership better = weighted_ownership(lanes.lanes(), speeds);
  return slowest(better, speeds) < kWorthwhile * slowest(lanes, speeds) ? better : lanes;
}

}  // namespace lockstep::train
