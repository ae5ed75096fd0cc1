// SPDX-License-Identifier: Apache-2.0
//
// One step of an optimizer over a flat run of parameters. Everything is read and written once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lockstep/base/dtype.h"

namespace lockstep::kernels {

// The parameters of one step. `working` is the copy that the model computes with, in bf16 or fp16; null when
// the model computes with the master weights themselves. Of split master weights (split.h) `working` has the
// upper halves and `lower` the lower ones, and there is no `master`.
struct Parameters {
  std::span<float> master = {};
  std::byte* working = nullptr;
  DType working_dtype = DType::fp32;
  std::span<std::uint16_t> lower = {};
  std::span<const float> gradient;
  float gradient_scale =
      1.0F;  // what the gradient is multiplied by first: averaging, unscaling and clipping in one
};

struct AdamW {
  float learning_rate = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.95F;
  float epsilon = 1e-8F;
  float weight_decay = 0.0F;
  std::uint64_t step = 1;  // counts from 1
};
// `mean` and `square` are the running averages of the gradient and of its square; all runs have the same
// length.
void adamw(const AdamW& how, const Parameters& parameters, std::span<float> mean, std::span<float> square);

struct Sgd {
  float learning_rate = 1e-2F;
  float momentum = 0.0F;
  float weight_decay = 0.0F;
};
void sgd(const Sgd& how, const Parameters& parameters, std::span<float> momentum);

// The same in plain C++, element by element: the twins that tests compare with.
void adamw_reference(const AdamW& how, const Parameters& parameters, std::span<float> mean,
                     std::span<float> square);
void sgd_reference(const Sgd& how, const Parameters& parameters, std::span<float> momentum);

}  // namespace lockstep::kernels
