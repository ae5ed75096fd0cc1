// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/save_history.h"

#include <array>
#include <chrono>

namespace lockstep::train {

void agree_on(SaveHistory& history, const comm::Communicator& world) {
  std::int64_t most = history.ended;
  world.all_reduce(as_writable_bytes_of(most), {.dtype = DType::int64, .op = comm::ReduceOp::max});
  const auto now = Clock::now();
  // Whoever knows less keeps silent: all numbers are at least 0.
  std::array<double, 6> known = {};
  if (history.ended == most) {
    const SaveCost cost = history.cost.value_or(SaveCost());
    known = {static_cast<double>(history.failures),
             std::chrono::duration<double>(now - history.last_began).count(),
             history.cost ? 1.0 : 0.0,
             cost.stall_seconds,
             cost.seconds,
             static_cast<double>(history.step)};
  }
  world.all_reduce(std::as_writable_bytes(std::span(known)),
                   {.dtype = DType::fp64, .op = comm::ReduceOp::max});
  history.ended = most;
  history.failures = static_cast<std::int64_t>(known[0]);
  history.last_began =
      now - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(known[1]));
  history.cost = known[2] > 0 ? std::optional(SaveCost{known[3], known[4]}) : std::nullopt;
  history.step = static_cast<std::int64_t>(known[5]);
}

// Counted, so that those who were away when the run went back to an older step are not believed.
void begin_from(SaveHistory& history, std::int64_t step) {
  ++history.ended;
  history.step = step;
}

}  // namespace lockstep::train
