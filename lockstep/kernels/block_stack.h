// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "lockstep/kernels/fold_kernels.h"
#include "lockstep/kernels/reduce.h"

namespace lockstep::kernels {

// Evaluates trees of any shape block by block, so that partial values stay in the first-level cache and the
// operands are read once. About 50 KB, meant for the stack of the caller.
class BlockStack {
 public:
  // `partials`: see partial_values(). `streams`: operands and outputs together.
  BlockStack(const FoldKernels& kernels, std::size_t partials, std::size_t streams);

  // The most bytes that evaluate() can take at once; a multiple of 8.
  std::size_t block_bytes() const { return slot_bytes_; }

  // Combines `elements` elements that begin `offset` bytes into each operand. At least two operands.
  void evaluate(std::span<const Operand> operands, std::size_t offset, Outputs out, std::size_t elements);

 private:
  void push(const std::byte* data) { values_[depth_++] = data; }
  void fold_top(unsigned height, const Outputs* last, std::size_t elements);
  bool is_partial(const std::byte* data) const;

  // The smallest first-level cache in use has 32 KiB: half for partial values, half for operands.
  static constexpr std::size_t kArenaBytes = 16384;

  const FoldKernels& kernels_;
  std::size_t slot_bytes_;
  std::size_t depth_ = 0;
  std::size_t partials_ = 0;  // how many of the values are in the arena, in the order of the stack
  std::array<const std::byte*, kMaxOperands> values_;
  alignas(64) std::array<std::byte, kArenaBytes> arena_;
};

}  // namespace lockstep::kernels
