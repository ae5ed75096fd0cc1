// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "lockstep/model/initial_values.h"
#include "lockstep/model/parameters.h"

namespace lockstep::model {

// Normal values everywhere, also where training starts with zeros or ones: nothing may hide behind them.
inline at::Tensor some_values(const FlatLayout& layout) {
  at::Tensor values = at::empty({layout.elements()}, at::kFloat);
  for (std::size_t i = 0; i < layout.specs().size(); ++i) {
    ParameterSpec spec = layout.specs()[i];
    const float centre = spec.initial == Initial::ones ? 1.0F : 0.0F;
    spec.initial = Initial::normal;
    spec.deviation = 0.1F;
    const auto [first, count] = layout.places()[i];
    const at::Tensor part = values.narrow(0, first, count);
    initial_values(spec, 7, 0, {part.data_ptr<float>(), static_cast<std::size_t>(count)});
    part.add_(centre);
  }
  return values;
}

}  // namespace lockstep::model
