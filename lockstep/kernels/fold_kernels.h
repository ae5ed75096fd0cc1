// SPDX-License-Identifier: Apache-2.0
//
// The inner loops of reductions, resolved for the processor at run time. Addresses need no alignment.
#pragma once

#include <cstddef>

#include "lockstep/base/dtype.h"
#include "lockstep/kernels/reduce.h"

namespace lockstep::kernels {

// Where a value is written; `second` may be null.
struct Outputs {
  std::byte* first = nullptr;
  std::byte* second = nullptr;
};

// Combines the operands (as many as the name says) element by element. An output may equal an operand.
using Fold = void (*)(const std::byte* const* operands, Outputs out, std::size_t elements);
// Divides each element; divisor >= 1. An output may equal `value`.
using Divide = void (*)(const std::byte* value, Outputs out, std::size_t elements, std::size_t divisor);

struct FoldKernels {
  Fold pair = nullptr;  // a + b
  Fold quad = nullptr;  // (a + b) + (c + d)
  Divide divide = nullptr;
};

const FoldKernels& fold_kernels(DType dtype, ReduceOp op);

}  // namespace lockstep::kernels
