// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "lockstep/base/deadline.h"
#include "lockstep/metrics/chrome_trace.h"
#include "lockstep/schedule/step/step.h"
#include "lockstep/train/common_instant.h"
#include "lockstep/train/groups.h"
#include "lockstep/train/pass_spans.h"

namespace lockstep::train {

// When each rank of a world computed and waited, on one time line: FOLDER/from_step_S.json, with a process
// for each rank, in the order of stages, that has a thread of its passes and one of all its actions. S is
// the first step of the world: what one that began at another step has left stays.
//
// Until the end every rank writes a file of its own, FOLDER/from_step_S.rank_N.json, step by step. When a
// rank is lost, these are what is left.
class StepTrace {
 public:
  struct Options {
    std::filesystem::path folder;
    std::int64_t first_step = 1;
  };

  // All ranks make theirs together. UsageError or ToldElsewhere, on all of them, when a file cannot be
  // opened.
  StepTrace(const Options& options, const Groups& groups);

  void begin_step(std::int64_t step, PassesOfStep passes);
  void add(const schedule::Action& action, Clock::time_point began, Clock::time_point ended);
  void end_step();

  // On all ranks together, at the end: makes one file of theirs, which rank 0 writes, wherever theirs are.
  // Returns it, or nothing, after a warning, when it could not be written. Nothing can be added any more.
  std::optional<std::filesystem::path> gather();

 private:
  // Of the step under way.
  struct Step {
    std::int64_t number;
    PassSpans passes;
  };

  void add_pass(const PassSpan& span);

  comm::Communicator world_;
  std::filesystem::path whole_;
  std::filesystem::path own_;
  CommonInstant start_;
  std::optional<metrics::ChromeTrace> trace_;
  std::optional<Step> step_;
};

}  // namespace lockstep::train
