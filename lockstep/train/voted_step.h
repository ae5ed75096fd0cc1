// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "lockstep/train/kept_state.h"
#include "lockstep/train/mirror.h"
#include "lockstep/train/step_runner.h"

namespace lockstep::train {

// A step that this rank, and its mirror, can apply without the others: from its vote until it is applied, or
// until what has become of it is known. Where ranks never change nothing is voted on.
class VotedStep {
 public:
  // As RunHooks::agree; null: ranks never change.
  using Agree = std::function<bool(std::int64_t step)>;
  // What is referred to must outlive this; the mirror may be null.
  VotedStep(Agree agree, StepRunner& runner, Mirror* mirror);

  // What the run has reached when the step is applied, and how that is done.
  struct Step {
    Reached reached;
    OptimizerStep optimizer;
  };
  // When the step can be applied and nothing of it was; returns when all ranks apply it. CommError when that
  // cannot be known.
  void vote(const Step& step);
  // This rank has applied it.
  void applied() { voted_.reset(); }
  // Whether the last one that was voted on is the last with these ranks.
  bool regroups() const { return regroups_; }

  // The step, when this rank has not heard of the others.
  std::optional<std::int64_t> undecided() const;
  // What has become of it is known: it counts if it is not later than `decided`, and is applied then. What
  // the run has reached so; none when there is no such step.
  std::optional<Reached> settle(std::int64_t decided);

 private:
  struct Voted {
    Step step;
    bool is_decided = false;
  };
  void apply_to_mirror();

  Agree agree_;
  StepRunner& runner_;
  Mirror* mirror_;
  std::optional<Voted> voted_;
  bool regroups_ = false;
};

}  // namespace lockstep::train
