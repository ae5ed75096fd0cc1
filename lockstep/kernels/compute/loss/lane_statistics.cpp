// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/kernels/compute/loss/lane_head.h"

namespace lockstep::kernels {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

TokenSoftmax joined(const TokenSoftmax& a, const TokenSoftmax& b) {
  const float highest = std::max(a.highest, b.highest);
  const float target = std::max(a.target, b.target);
  // Lanes without rows: infinity minus itself is no number.
  if (highest == kNone) return {kNone, a.sum + b.sum, target};
  return {highest, a.sum * std::exp(a.highest - highest) + b.sum * std::exp(b.highest - highest), target};
}

}  // namespace

TokenSoftmax softmax_over_lanes(std::span<const float> statistics, std::size_t lanes, std::size_t token) {
  if (lanes > 1) {
    const std::size_t half = statistics.size() / 2;
    return joined(softmax_over_lanes(statistics.first(half), lanes / 2, token),
                  softmax_over_lanes(statistics.subspan(half), lanes / 2, token));
  }
  const std::size_t tokens = statistics.size() / lane_statistics;
  return {statistics[highest_logit * tokens + token], statistics[sum_of_exponentials * tokens + token],
          statistics[target_logit * tokens + token]};
}

}  // namespace lockstep::kernels
