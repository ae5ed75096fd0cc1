// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/kernels/compute/norm/norm.h"

namespace lockstep::kernels {

// UsageError unless parameters, input and statistics fit each other.
void check_norm(const Norm& norm, const ConstMatrix& in, const NormStatistics& statistics);
// UsageError unless the gradients have the shapes of what they are gradients of.
void check_norm_gradients(const Norm& norm, const ConstMatrix& in, const ConstMatrix& out_gradient,
                          const NormGradients& gradients);

}  // namespace lockstep::kernels
