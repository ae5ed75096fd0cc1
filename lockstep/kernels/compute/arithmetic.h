// SPDX-License-Identifier: Apache-2.0
//
// What the bits of kernels depend on beside their arguments. Vectors of another width add in another order,
// and oneDNN has other products for other processors; no library that is worth its speed gives all of them
// the same.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/base/dtype.h"
#include "lockstep/base/hash.h"

namespace lockstep::kernels {

struct Arithmetic {
  std::string name;  // for people: "AVX3, oneDNN 2.6.3 for avx512_core_bf16"
  // Of what kernels make here of fixed values of a dtype. Processes with different ones compute different
  // bits; with equal ones, the same as far as the trial went.
  Hash digest;
};

// "AVX3, oneDNN 2.6.3 for avx512_core_bf16 (2fc83ef1ef03f979158a33792349b6f2)"
std::string to_text(const Arithmetic& arithmetic);
// Whether such a text, of any other process, has the same digest.
bool has_digest_of(const Arithmetic& arithmetic, std::string_view text);

// Of fp32, bf16 or fp16. The first call for a dtype takes some hundredths of a second. The number of threads
// does not matter, and none is started.
const Arithmetic& arithmetic_of(DType dtype);

}  // namespace lockstep::kernels
