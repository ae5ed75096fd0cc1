// SPDX-License-Identifier: Apache-2.0
//
// The inner loops of reductions, resolved for the processor at run time. Addresses need no alignment.
#pragma once

#include <array>
#include <cstddef>

#include "lockstep/base/dtype.h"
#include "lockstep/kernels/reduce.h"

namespace lockstep::kernels {

// Where a value is written; `second` may be null.
struct Outputs {
  std::byte* first = nullptr;
  std::byte* second = nullptr;
};

// Combines operands element by element as a perfect tree. An output may equal an operand.
using Fold = void (*)(const std::byte* const* operands, Outputs out, std::size_t elements);
// Divides each element; divisor >= 1. An output may equal `value`.
using Divide = void (*)(const std::byte* value, Outputs out, std::size_t elements, std::size_t divisor);

inline constexpr unsigned kMaxFoldHeight = 3;
inline constexpr std::size_t kMaxFoldOperands = std::size_t{1} << kMaxFoldHeight;

struct FoldKernels {
  std::array<Fold, kMaxFoldHeight> trees = {};  // of 2, 4 and 8 operands; null where nobody waits for it
  Divide divide = nullptr;

  // The tree over 2^height operands, height 1 to max_height().
  Fold tree(unsigned height) const { return trees[height - 1]; }
  unsigned max_height() const { return trees.back() != nullptr ? kMaxFoldHeight : 1; }
};

const FoldKernels& fold_kernels(DType dtype, ReduceOp op);

}  // namespace lockstep::kernels
