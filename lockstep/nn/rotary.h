// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>

#include "lockstep/kernels/compute/rotary/rotary.h"

namespace lockstep::nn {

// Turns every head of x ([batch, length, heads * width]) by its place; the first place is `first`. The way
// back keeps the table.
at::Tensor rotary(const at::Tensor& x, const std::shared_ptr<const kernels::RotaryTable>& table,
                  std::int64_t first = 0);

}  // namespace lockstep::nn
