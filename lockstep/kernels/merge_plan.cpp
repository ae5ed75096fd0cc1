// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/merge_plan.h"

#include <algorithm>
#include <bitset>

#include "lockstep/base/error.h"

namespace lockstep::kernels {

MergePlan plan_merges(std::span<const Operand> operands) {
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
  return {.partial_values = most};
}

}  // namespace lockstep::kernels
