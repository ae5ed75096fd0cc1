// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "lockstep/base/deadline.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/metrics/chrome_trace.h"
#include "lockstep/schedule/step/step.h"

namespace lockstep::train {

// When this rank did which action: FOLDER/rank_N.json, which shows all ranks on one time line.
class StepTrace {
 public:
  // All ranks make theirs together: they agree on the instant that times count from.
  StepTrace(std::filesystem::path folder, const comm::Communicator& world);

  void add(const schedule::Action& action, Clock::time_point began, Clock::time_point ended);

  // UsageError when the file cannot be written.
  void write() const;

 private:
  std::filesystem::path file_;
  metrics::ChromeTrace trace_;
  Clock::time_point start_;  // this rank's name for that instant
};

}  // namespace lockstep::train
