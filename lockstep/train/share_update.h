// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "lockstep/base/dtype.h"
#include "lockstep/kernels/compute/update/optimizers.h"
#include "lockstep/mesh/range.h"
#include "lockstep/model/parameters.h"

namespace lockstep::train {

// How an optimizer is set for a step; its weight decay applies to the parameters that decay.
using OptimizerStep = std::variant<kernels::AdamW, kernels::Sgd>;

// What an optimizer reads and writes of a run of flat elements, element by element as
// kernels::Parameters has them.
struct ShareState {
  std::span<float> master = {};
  std::byte* working = nullptr;
  DType working_dtype = DType::fp32;
  std::span<std::uint16_t> lower = {};
  std::vector<std::span<float>> moments;
};

// Of some of these elements.
ShareState part_of(const ShareState& state, Range elements);

// One step of the optimizer for the elements `own` of the layout; `gradients` are theirs, to be multiplied by
// `gradient_scale`.
void update_share(const OptimizerStep& how, const model::FlatLayout& layout, Range own,
                  const ShareState& state, std::span<const float> gradients, float gradient_scale);

}  // namespace lockstep::train
