// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/voted_step.h"

#include <utility>

#include "lockstep/base/failpoint.h"

namespace lockstep::train {
namespace {

bool is_updated(const Reached& reached) {
  return reached.last && reached.last->updated != 0;
}

}  // namespace

VotedStep::VotedStep(Agree agree, StepRunner& runner, Mirror* mirror)
    : agree_(std::move(agree)), runner_(runner), mirror_(mirror) {}

void VotedStep::vote(const Step& step) {
  if (!agree_) return;
  if (mirror_ != nullptr && is_updated(step.reached)) mirror_->take_gradients(runner_.shares_of_gradients());
  LOCKSTEP_FAILPOINT("train.mirrored");
  voted_ = {.step = step};
  regroups_ = agree_(step.reached.progress.step);
  apply_to_mirror();
  voted_->is_decided = true;
  LOCKSTEP_FAILPOINT("train.decided");
}

std::optional<std::int64_t> VotedStep::undecided() const {
  return voted_ && !voted_->is_decided ? std::optional(voted_->step.reached.progress.step) : std::nullopt;
}

std::optional<Reached> VotedStep::settle(std::int64_t decided) {
  std::optional<Reached> reached;
  if (voted_ && (voted_->is_decided || voted_->step.reached.progress.step <= decided)) {
    if (!voted_->is_decided) apply_to_mirror();
    runner_.apply_rest();
    reached = voted_->step.reached;
  }
  voted_.reset();
  return reached;
}

void VotedStep::apply_to_mirror() {
  if (mirror_ == nullptr || !is_updated(voted_->step.reached)) return;
  mirror_->update(voted_->step.optimizer, runner_.gradient_factor());
}

}  // namespace lockstep::train
