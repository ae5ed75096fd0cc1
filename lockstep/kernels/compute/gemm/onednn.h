// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/kernels/compute/gemm/gemm.h"

namespace lockstep::kernels {

// What is stored besides the product: nothing, what was there, or a bias row (of the dtype of the factors).
struct Addend {
  Store store = Store::replace;
  const std::byte* bias = nullptr;  // with Store::replace only
};

// What values of a dtype are multiplied as on this processor: themselves, or a copy in fp32. No processor
// that we know of multiplies fp16 into fp32 faster than fp32 itself. Without instructions for bf16, oneDNN
// has its products only with AVX-512, where they take five times as long as those of fp32.
DType multiplied_as(DType dtype);

// Its version, and the instructions that it uses here: "oneDNN 2.6.3 for avx512_core_bf16".
std::string onednn_name();

// One product by oneDNN on this thread alone, of shapes that check_shapes() has accepted and a dtype that is
// multiplied as itself, not empty.
void multiply(const Factor& a, const Factor& b, const Matrix& c, const Addend& addend);

}  // namespace lockstep::kernels
