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

bool is_time_to_save(const spec::Checkpoint& checkpoint, std::int64_t step, double since_last,
                     const std::optional<SaveCost>& cost) {
  if (checkpoint.interval > 0 && step % checkpoint.interval == 0) return true;
  if (checkpoint.interval_seconds > 0 && since_last >= checkpoint.interval_seconds) return true;
  if (checkpoint.interval >= 0) return false;
  return since_last >= (cost ? best_interval_seconds(*cost, checkpoint.mtbf_seconds) : kFirstSeconds);
}

}  // namespace lockstep::train
