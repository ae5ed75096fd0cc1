// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/kernels/compute/gemm/gemm.h"

namespace lockstep::kernels {

// UsageError unless the product a b can be stored in c.
void check_shapes(const Factor& a, const Factor& b, const Matrix& c, Store store);
// UsageError unless the bias can be added to the rows of c.
void check_bias(const ConstMatrix& bias, const Factor& a, const Matrix& c);

}  // namespace lockstep::kernels
