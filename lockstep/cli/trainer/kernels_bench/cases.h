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

// The kernels of training at the sizes of a gpt2-124m with 1024 tokens.
std::vector<KernelCase> kernel_cases();

}  // namespace lockstep::cli
