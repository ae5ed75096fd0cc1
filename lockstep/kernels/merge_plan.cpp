// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/merge_plan.h"

#include <algorithm>
#include <bit>
#include <bitset>

#include "lockstep/base/error.h"

namespace lockstep::kernels {

std::size_t partial_values(std::span<const Operand> operands) {
  LOCKSTEP_CHECK(!operands.empty() && operands.size() <= kMaxOperands, "operands of a combination");
  std::bitset<kMaxOperands> is_partial;
  std::size_t depth = 0;
  std::size_t partials = 0;
  std::size_t most = 0;
  for (const Operand& operand : operands) {
    is_partial.reset(depth++);
    for (unsigned merge = 0; merge < operand.merges; ++merge) {
      LOCKSTEP_CHECK(depth >= 2, "a merge finds fewer than two values");
      --depth;
      const bool lower = is_partial.test(depth - 1);
      const bool upper = is_partial.test(depth);
      if (lower && upper) --partials;
      if (!lower && !upper) ++partials;
      is_partial.set(depth - 1);
      most = std::max(most, partials);
    }
  }
  LOCKSTEP_CHECK(depth == 1, "the merges leave more than one value");
  return most;
}

unsigned leading_tree_height(std::span<const Operand> operands, unsigned max_height) {
  unsigned height = 0;
  const std::size_t limit = std::min(operands.size(), std::size_t{1} << max_height);
  for (std::size_t leaves = 1; leaves <= limit; ++leaves) {
    const unsigned merges = operands[leaves - 1].merges;
    const auto perfect = static_cast<unsigned>(std::countr_zero(leaves));
    if (std::has_single_bit(leaves) && merges >= perfect) height = perfect;
    if (merges != perfect) break;
  }
  return height;
}

}  // namespace lockstep::kernels
