// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "lockstep/kernels/compute/rotary/rotary.h"

namespace lockstep::nn {

// Turns every head of x ([batch, length, heads * width]) by its place; the first place is `first`. The table
// must outlive the backward pass.
at::Tensor rotary(const at::Tensor& x, const kernels::RotaryTable& table, std::int64_t first = 0);

}  // namespace lockstep::nn
