// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/reduce.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/kernels/block_stack.h"
#include "lockstep/kernels/fold_kernels.h"
#include "lockstep/kernels/merge_plan.h"

namespace lockstep::kernels {
namespace {

// Small enough to be still in the first-level cache for the second destination.
constexpr std::size_t kCopyBytes = 4096;

void copy_to(std::span<std::byte* const> destinations, const std::byte* from, std::size_t offset,
             std::size_t bytes) {
  for (std::byte* destination : destinations) {
    if (destination + offset != from) std::memcpy(destination + offset, from, bytes);
  }
}

void copy_blocks(const std::byte* from, std::span<std::byte* const> destinations, std::size_t bytes) {
  if (destinations.size() == 1) return copy_to(destinations, from, 0, bytes);
  for (std::size_t offset = 0; offset < bytes; offset += kCopyBytes) {
    copy_to(destinations, from + offset, offset, std::min(kCopyBytes, bytes - offset));
  }
}

Outputs outputs_at(std::span<std::byte* const> destinations, std::size_t offset) {
  return {.first = destinations[0] + offset,
          .second = destinations.size() > 1 ? destinations[1] + offset : nullptr};
}

// The common exchanges of two, four and eight ranks: one kernel does all of it in one sweep.
bool fold_in_one_sweep(const FoldKernels& kernels, std::span<const Operand> operands, Outputs out,
                       std::size_t elements) {
  const unsigned height = leading_tree_height(operands, kernels.max_height());
  if (height == 0 || operands.size() != std::size_t{1} << height || operands.back().merges != height) {
    return false;
  }
  std::array<const std::byte*, kMaxFoldOperands> data;
  for (std::size_t i = 0; i < operands.size(); ++i) data[i] = operands[i].data;
  kernels.tree(height)(data.data(), out, elements);
  return true;
}

void fold_blocks(const Combination& how, std::span<const Operand> operands,
                 std::span<std::byte* const> destinations, std::size_t elements) {
  const FoldKernels& kernels = fold_kernels(how.dtype, how.op);
  const std::size_t bytes = elements * size_of(how.dtype);
  BlockStack stack(kernels, partial_values(operands), operands.size() + destinations.size());
  for (std::size_t offset = 0; offset < bytes; offset += stack.block_bytes()) {
    const std::size_t block = std::min(stack.block_bytes(), bytes - offset);
    const std::size_t count = block / size_of(how.dtype);
    const Outputs out = outputs_at(destinations, offset);
    const std::byte* value = operands[0].data + offset;
    if (operands.size() > 1) {
      stack.evaluate(operands, offset, how.divide_by == 1 ? out : Outputs{.first = out.first}, count);
      value = out.first;
    }
    if (how.divide_by != 1) kernels.divide(value, out, count, how.divide_by);
    if (destinations.size() > 2) copy_to(destinations.subspan(2), out.first, offset, block);
  }
}

}  // namespace

std::string_view name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::average:
      return "average";
    case ReduceOp::min:
      return "min";
    case ReduceOp::max:
      return "max";
    case ReduceOp::product:
      return "product";
  }
  return "unknown";
}

void combine(const Combination& how, std::span<const Operand> operands,
             std::span<std::byte* const> destinations, std::size_t elements) {
  LOCKSTEP_CHECK(how.divide_by >= 1, "a combination divides by zero");
  if (elements == 0 || destinations.empty()) return;
  if (how.divide_by == 1 && operands.size() == 1) {
    LOCKSTEP_CHECK(operands[0].merges == 0, "a merge finds fewer than two values");
    return copy_blocks(operands[0].data, destinations, elements * size_of(how.dtype));
  }
  const bool one_sweep =
      how.divide_by == 1 && destinations.size() <= 2 &&
      fold_in_one_sweep(fold_kernels(how.dtype, how.op), operands, outputs_at(destinations, 0), elements);
  if (!one_sweep) fold_blocks(how, operands, destinations, elements);
}

}  // namespace lockstep::kernels
