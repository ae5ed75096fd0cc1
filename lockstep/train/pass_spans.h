// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include "lockstep/base/deadline.h"
#include "lockstep/schedule/step/step.h"

namespace lockstep::train {

// A pass of a pipeline's schedule, and when it was computed. A stage waits for its input before it, and
// hands on its output after it.
struct PassSpan {
  schedule::PipelineEntry entry;  // its micro-batch is counted over all lanes of the rank
  Clock::time_point began;
  Clock::time_point ended;
};

// What a rank computes in a step.
struct PassesOfStep {
  schedule::Stage stage;
  int first_lane = 0;
  int micro_batches = 1;  // of each lane
};

// Finds the passes that the actions of a step make up. The loss counts to the forward pass of the last part,
// what is computed once more to the backward pass.
class PassSpans {
 public:
  explicit PassSpans(PassesOfStep step) : step_(std::move(step)) {}

  // In the order in which they ran. Returns the pass that ended before this action, when there is one.
  std::optional<PassSpan> add(const schedule::Action& action, Clock::time_point began,
                              Clock::time_point ended);
  // The last pass, when there is one.
  std::optional<PassSpan> finish();
  const schedule::Stage& stage() const { return step_.stage; }

 private:
  std::optional<schedule::PipelineEntry> pass_of(const schedule::Action& action) const;

  PassesOfStep step_;
  std::optional<PassSpan> open_;
};

}  // namespace lockstep::train
