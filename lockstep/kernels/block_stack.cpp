// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/block_stack.h"

#include <algorithm>

#include "lockstep/kernels/merge_plan.h"

namespace lockstep::kernels {
namespace {

constexpr std::size_t kPageBytes = 4096;

// Operands and outputs mostly begin at the same offset in their pages, so that they share sets of the cache.
// With more of them than a set has room for, they push each other out before a block of a whole page is done:
// of four ranks with two lanes each, 16 MiB took a tenth longer than in blocks of half a page
// (docs/benchmarks/collectives.md).
constexpr std::size_t kWays = 8;

std::size_t most_block_bytes(std::size_t streams) {
  return streams > kWays ? kPageBytes / 2 : kPageBytes;
}

constexpr std::size_t kVectorBytes = 64;
constexpr std::size_t kMinBlockBytes = 8;  // one element of the widest type

std::size_t rounded_down(std::size_t bytes) {
  return bytes >= kVectorBytes ? bytes / kVectorBytes * kVectorBytes
                               : bytes / kMinBlockBytes * kMinBlockBytes;
}

}  // namespace

BlockStack::BlockStack(const FoldKernels& kernels, std::size_t partials, std::size_t streams)
    : kernels_(kernels),
      slot_bytes_(rounded_down(
          std::min(kArenaBytes / std::max<std::size_t>(partials, 1), most_block_bytes(streams)))) {
  static_assert(kMaxOperands / 2 * kMinBlockBytes <= kArenaBytes, "a slot holds one element at least");
}

void BlockStack::evaluate(std::span<const Operand> operands, std::size_t offset, Outputs out,
                          std::size_t elements) {
  depth_ = partials_ = 0;
  for (std::size_t next = 0; next < operands.size();) {
    const unsigned height = leading_tree_height(operands.subspan(next), kernels_.max_height());
    const std::size_t group_end = next + (std::size_t{1} << height);
    while (next < group_end) push(operands[next++].data + offset);

    const Outputs* last = next == operands.size() ? &out : nullptr;
    unsigned merges = operands[next - 1].merges - height;
    if (height > 0) fold_top(height, merges == 0 ? last : nullptr, elements);
    for (; merges > 0; --merges) fold_top(1, merges == 1 ? last : nullptr, elements);
  }
}

// Partial values take slots in the order in which they stand on the stack: the result replaces its operands.
void BlockStack::fold_top(unsigned height, const Outputs* last, std::size_t elements) {
  depth_ -= std::size_t{1} << height;
  const std::byte* const* operands = &values_[depth_];
  for (std::size_t i = 0; i < std::size_t{1} << height; ++i) partials_ -= is_partial(operands[i]) ? 1 : 0;
  std::byte* slot = arena_.data() + partials_ * slot_bytes_;
  kernels_.tree(height)(operands, last != nullptr ? *last : Outputs{.first = slot}, elements);
  push(slot);
  ++partials_;
}

bool BlockStack::is_partial(const std::byte* data) const {
  return data >= arena_.data() && data < arena_.data() + arena_.size();
}

}  // namespace lockstep::kernels
