// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/kernels/compute/gemm/gemm.h"

namespace lockstep::kernels {

// What is stored besides the product: nothing, what was there, or a bias row (of the dtype of the factors).
struct Addend {
  Store store = Store::replace;
  const std::byte* bias = nullptr;  // with Store::replace only
};

// One product by oneDNN on this thread alone, of shapes that check_shapes() has accepted, fp32 or bf16, not
// empty.
void multiply(const Factor& a, const Factor& b, const Matrix& c, const Addend& addend);

}  // namespace lockstep::kernels
