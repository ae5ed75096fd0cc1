// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lockstep/base/error.h"

namespace lockstep::cli {

using schedule::Op;

Spread spread_of(std::span<const double> samples) {
  LOCKSTEP_CHECK(!samples.empty());
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  const double median = sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  return {.median = median, .min = sorted.front(), .max = sorted.back()};
}

double bus_factor(Op op, int ranks) {
  const double n = ranks;
  switch (op) {
    case Op::all_reduce:
      return 2 * (n - 1) / n;
    case Op::reduce_scatter:
    case Op::all_gather:
    case Op::all_to_all:
      return (n - 1) / n;
    case Op::broadcast:
    case Op::reduce:
    case Op::barrier:
      return 1;
  }
  return 1;
}

double gigabytes_per_second(std::size_t bytes, double time_us) {
  return bytes == 0 || time_us <= 0 ? 0 : static_cast<double>(bytes) / time_us / 1e3;
}

std::size_t memory_limit_bytes(Op op, std::size_t bytes, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  const std::size_t share = (bytes + n - 1) / n;
  switch (op) {
    case Op::all_reduce:
    case Op::all_to_all:
      return bytes;
    case Op::reduce_scatter:
    case Op::reduce:
      return (bytes + share + 1) / 2;
    case Op::all_gather:
      return bytes - bytes / n;
    case Op::broadcast:
      return n == 1 ? 0 : bytes;
    case Op::barrier:
      return 0;
  }
  return bytes;
}

std::size_t iterations_for_turn(double once_us, double turn_us) {
  if (once_us <= 0) return kMaxIterations;
  const double wanted = std::ceil(turn_us / once_us);
  return static_cast<std::size_t>(std::clamp(wanted, 1.0, static_cast<double>(kMaxIterations)));
}

}  // namespace lockstep::cli
