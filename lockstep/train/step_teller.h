// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "lockstep/comm/communicator.h"
#include "lockstep/spec/run_spec.h"
#include "lockstep/train/step_report.h"
#include "lockstep/train/stragglers.h"

namespace lockstep::train {

// Tells of steps, and with them who holds the others up.
class StepTeller {
 public:
  struct Options {
    std::function<void(const StepReport&)> after_step = nullptr;  // as RunHooks has it
    bool ranks_may_leave = false;                                 // and the run goes on without them
  };
  // What is referred to must outlive this.
  StepTeller(const spec::RunSpec& run, const comm::Communicator& world, Options options);

  // What this rank has spent since the speeds were last compared.
  void add(const PhaseTimes& times) { speeds_.add(times); }

  // All ranks, after every step: adds what their speeds are, when that is due, and tells.
  void tell(StepReport& report);
  // A step that was told, or not, by a world that was lost.
  void tell_again(const StepReport& report) const;
  // All ranks, when a step was told: Evicted and CommError when it was told that one has to leave.
  void evict_if_told(const StepReport& report) const;

 private:
  bool can_evict() const;

  const spec::RunSpec& run_;
  const comm::Communicator& world_;
  Options options_;
  StragglerWatch speeds_;
};

}  // namespace lockstep::train
