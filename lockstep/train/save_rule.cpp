// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/save_rule.h"

#include <algorithm>
#include <cmath>

namespace lockstep::train {
namespace {

constexpr double kMostStall = 0.035;
constexpr double kFirstSeconds = 60;

}  // namespace

double best_interval_seconds(const SaveCost& cost, double mtbf_seconds) {
  return std::max(
      {std::sqrt(2 * cost.stall_seconds * mtbf_seconds), cost.stall_seconds / kMostStall, 2 * cost.seconds});
}

bool is_time_to_save(const spec::Checkpoint& checkpoint, std::int64_t step, const LastSave& last) {
  const std::int64_t interval = checkpoint.interval;
  if (interval > 0 && step / interval > last.step / interval) return true;
  if (checkpoint.interval_seconds > 0 && last.seconds_ago >= checkpoint.interval_seconds) return true;
  if (interval >= 0) return false;
  return last.seconds_ago >=
         (last.cost ? best_interval_seconds(*last.cost, checkpoint.mtbf_seconds) : kFirstSeconds);
}

}  // namespace lockstep::train
