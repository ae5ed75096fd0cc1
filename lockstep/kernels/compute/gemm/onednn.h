// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/kernels/compute/gemm/gemm.h"

namespace lockstep::kernels {

// One product by oneDNN on this thread alone, of shapes that check_shapes() has accepted, fp32 or bf16, not
// empty.
void multiply(const Factor& a, const Factor& b, const Matrix& c, Store store);

}  // namespace lockstep::kernels
