// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/spec/run_spec.h"

namespace lockstep::spec {

// The learning rate of update `step`, counted from 0, in a run of `total_steps`. With W warm-up steps the
// rate rises in equal parts: lr (step + 1) / (W + 1) below W. It then stays at lr, and falls over the last D
// steps towards lr x min_lr_factor, which a step `total_steps` would have; every later step has it too. D is
// decay_ratio x total_steps, at most what the warm-up leaves.
double lr_at(std::int64_t step, const LrScheduler& scheduler, const Optimizer& optimizer,
             std::int64_t total_steps);

}  // namespace lockstep::spec
