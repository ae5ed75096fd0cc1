// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/kernels/compute/loss/head_loss.h"
#include "lockstep/kernels/compute/loss/lane_head.h"

namespace lockstep::kernels {

// UsageError unless all of it fits together.
void check_head(const HeadInputs& inputs, std::span<const float> losses);
void check_head(const HeadInputs& inputs, const HeadGradients& gradients);
void check_divided_head(const DividedHead& head, std::span<const float> losses);
void check_divided_head(const DividedHead& head, const Matrix& x_gradient);

}  // namespace lockstep::kernels
