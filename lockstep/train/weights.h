// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/kernels/compute/update/optimizers.h"
#include "lockstep/model/parameters.h"

namespace lockstep::train {

// How an optimizer is set for a step; its weight decay applies to the parameters that decay.
using OptimizerStep = std::variant<kernels::AdamW, kernels::Sgd>;

// The parameters of a model in fp32, their copy in the dtype that blocks compute with, and what the optimizer
// remembers of each.
class Weights {
 public:
  // First values from the seed. `moments`: how many floats per parameter the optimizer remembers (AdamW 2,
  // SGD 1).
  Weights(const model::FlatLayout& layout, DType dtype, std::uint64_t seed, int moments);

  const at::Tensor& working() const { return working_; }  // flat, of the dtype
  std::span<float> master() const;
  std::span<float> moment(int index) const;
  // To be called by whoever has written to master().
  void renew_working();

  // One step of the optimizer from these gradients, multiplied by `gradient_scale`.
  void update(const OptimizerStep& how, std::span<const float> gradients, float gradient_scale);

 private:
  const model::FlatLayout& layout_;  // outlives this
  at::Tensor master_;
  at::Tensor working_;  // the master itself in fp32
  std::vector<at::Tensor> moments_;
};

}  // namespace lockstep::train
