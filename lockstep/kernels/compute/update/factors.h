// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/kernels/compute/update/optimizers.h"

namespace lockstep::kernels {

// What is the same for all parameters of a step, computed in double and rounded once.
struct AdamFactors {
  float gradient_scale;
  float new_mean;           // 1 - beta1
  float new_square;         // 1 - beta2
  float rate;               // learning rate, corrected for the mean's start at zero
  float square_correction;  // for the square's
  float epsilon;
  float keep;  // what weight decay leaves
};
AdamFactors factors_of(const AdamW& how, float gradient_scale);

}  // namespace lockstep::kernels
