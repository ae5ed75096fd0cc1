// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/base/dtype.h"

namespace lockstep::cli {

// What a call of a kernel amounts to: `flops` for products; `bytes` that must be read or written at least,
// each once, for what only passes over memory.
struct KernelWork {
  double flops = 0;
  std::size_t bytes = 0;
  std::function<void()> call;  // owns its operands
};

struct KernelCase {
  std::string name;
  std::function<KernelWork(DType)> make;
};

// The kernels of a pass through the model, forward and backward, at the sizes of operands.h.
std::vector<KernelCase> pass_cases();

// The kernels that only run over parameters and gradients, and conversions.
std::vector<KernelCase> update_cases();

}  // namespace lockstep::cli
