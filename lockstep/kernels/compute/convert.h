// SPDX-License-Identifier: Apache-2.0
//
// Rows of fp32, bf16 or fp16 to floats and back. Kernels read a row into floats, compute, and write it back,
// so that each of them is written once for all dtypes.
#pragma once

#include <cstddef>
#include <span>

#include "lockstep/base/dtype.h"

namespace lockstep::kernels {

// Exact. `from` holds to.size() elements of `dtype`.
void to_floats(const std::byte* from, DType dtype, std::span<float> to);

// Rounds to nearest even; NaNs stay NaNs. `to` holds from.size() elements of `dtype`.
void from_floats(std::span<const float> from, std::byte* to, DType dtype);

}  // namespace lockstep::kernels
