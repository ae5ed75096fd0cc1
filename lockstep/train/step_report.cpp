// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/step_report.h"

#include <cmath>

namespace lockstep::train {

Reached reached_with(const StepReport& report, const BeforeStep& before) {
  // The scale is being found: such steps are no sign that the training has gone wrong, unless the loss
  // itself, which is not scaled, has.
  const bool is_adapting = before.loss_scale.can_fall() && std::isfinite(report.loss);
  LossScale loss_scale = before.loss_scale;
  loss_scale.record(report.updated);
  const checkpoint::Progress& progress = before.progress;
  return {.progress = {.step = report.step,
                       .data_position = static_cast<std::uint64_t>(report.step) * before.samples_per_step,
                       .bad_steps = progress.bad_steps + (report.updated ? 0 : 1),
                       .bad_in_a_row = report.updated ? 0 : progress.bad_in_a_row + (is_adapting ? 0 : 1),
                       .loss_scale = loss_scale.value(),
                       .good_steps = loss_scale.good_steps(),
                       .loss = report.loss},
          .last = checkpoint::LastStep{.gradient_norm = report.gradient_norm,
                                       .learning_rate = report.learning_rate,
                                       .loss_scale = report.loss_scale,
                                       .seconds = report.seconds,
                                       .updated = report.updated ? 1 : 0}};
}

std::optional<StepReport> report_of(const Reached& reached, std::int64_t tokens) {
  if (!reached.last) return std::nullopt;
  return StepReport{.step = reached.progress.step,
                    .loss = reached.progress.loss,
                    .gradient_norm = reached.last->gradient_norm,
                    .learning_rate = reached.last->learning_rate,
                    .loss_scale = reached.last->loss_scale,
                    .updated = reached.last->updated != 0,
                    .seconds = reached.last->seconds,
                    .tokens = tokens};
}

}  // namespace lockstep::train
