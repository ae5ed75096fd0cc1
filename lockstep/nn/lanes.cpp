// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/lanes.h"

#include <algorithm>

namespace lockstep::nn {

LaneRun lane_run(std::int64_t total, int lanes, int lane) {
  const std::int64_t full = (total + lanes - 1) / lanes;
  const std::int64_t begin = std::min(total, lane * full);
  return {begin, std::min(total - begin, full)};
}

std::int64_t Lanes::run() const {
  return several() ? lane_run(tokens, team->share().lanes, 0).count : tokens;
}

LaneRun Lanes::held() const {
  if (!divide_tokens()) return {0, tokens};
  const LaneShare share = team->share();
  const LaneRun first = lane_run(tokens, share.lanes, share.first);
  const LaneRun last = lane_run(tokens, share.lanes, share.first + share.count - 1);
  return {first.first, last.first + last.count - first.first};
}

LaneRun Lanes::run_here(int index) const {
  if (!several()) return {0, tokens};
  const LaneRun run = run_of(tokens, index);
  return {run.first - held().first, run.count};
}

LaneRun Lanes::run_of(std::int64_t total, int index) const {
  return several() ? lane_run(total, team->share().lanes, team->share().first + index) : LaneRun{0, total};
}

}  // namespace lockstep::nn
