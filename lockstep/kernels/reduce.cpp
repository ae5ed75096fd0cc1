// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/reduce.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/fold_kernels.h"
#include "lockstep/kernels/merge_plan.h"

namespace lockstep::kernels {
namespace {

constexpr std::array kAllOps = {ReduceOp::sum, ReduceOp::average, ReduceOp::min, ReduceOp::max,
                                ReduceOp::product};

// Partial values of a block live here; half of the smallest first-level cache in use, so that the operands'
// blocks fit beside them.
constexpr std::size_t kArenaBytes = 16384;
constexpr std::size_t kMaxBlockBytes = 4096;
constexpr std::size_t kMinBlockBytes = 8;  // one element of the widest type
static_assert(kMaxOperands / 2 * kMinBlockBytes <= kArenaBytes);

std::size_t block_bytes(std::size_t partial_values) {
  const std::size_t share = std::min(kArenaBytes / std::max<std::size_t>(partial_values, 1), kMaxBlockBytes);
  return share >= 64 ? share / 64 * 64 : std::max(share / 8 * 8, kMinBlockBytes);
}

bool is_balanced_quad(std::span<const Operand> operands) {
  return operands.size() >= 4 && operands[0].merges == 0 && operands[1].merges == 1 &&
         operands[2].merges == 0 && operands[3].merges >= 2;
}

// Evaluates the merges of one block after another; the partial values never leave the first-level cache.
class BlockStack {
 public:
  BlockStack(const FoldKernels& kernels, std::size_t slot_bytes)
      : kernels_(kernels), slot_bytes_(slot_bytes) {}

  // Operands at `offset` bytes; at least two.
  void evaluate(std::span<const Operand> operands, std::size_t offset, Outputs out, std::size_t elements) {
    depth_ = partials_ = 0;
    std::size_t next = 0;
    while (next < operands.size()) {
      unsigned merges = 0;
      if (is_balanced_quad(operands.subspan(next))) {
        const std::array quad = {operands[next].data + offset, operands[next + 1].data + offset,
                                 operands[next + 2].data + offset, operands[next + 3].data + offset};
        merges = operands[next + 3].merges - 2U;
        next += 4;
        const bool last = next == operands.size() && merges == 0;
        std::byte* slot = arena_.data() + partials_ * slot_bytes_;
        kernels_.quad(quad.data(), last ? out : Outputs{.first = slot}, elements);
        push(slot, true);
      } else {
        merges = operands[next].merges;
        push(operands[next].data + offset, false);
        ++next;
      }
      for (; merges > 0; --merges) merge(next == operands.size() && merges == 1, out, elements);
    }
  }

 private:
  void push(const std::byte* data, bool partial) {
    values_[depth_++] = data;
    partials_ += partial ? 1 : 0;
  }

  bool is_partial(const std::byte* data) const {
    return data >= arena_.data() && data < arena_.data() + arena_.size();
  }

  // Partial values take slots in the order in which they stand on the stack.
  void merge(bool last, Outputs out, std::size_t elements) {
    const std::byte* const* top_two = &values_[depth_ - 2];
    const int partial = (is_partial(top_two[0]) ? 1 : 0) + (is_partial(top_two[1]) ? 1 : 0);
    std::byte* slot = arena_.data() + (partials_ - partial) * slot_bytes_;
    kernels_.pair(top_two, last ? out : Outputs{.first = slot}, elements);
    depth_ -= 2;
    partials_ -= partial;
    push(slot, true);
  }

  const FoldKernels& kernels_;
  std::size_t slot_bytes_;
  std::size_t depth_ = 0;
  std::size_t partials_ = 0;
  std::array<const std::byte*, kMaxOperands> values_;
  alignas(64) std::array<std::byte, kArenaBytes> arena_;
};

void copy_to(std::span<std::byte* const> destinations, const std::byte* from, std::size_t offset,
             std::size_t bytes) {
  for (std::byte* destination : destinations) {
    if (destination + offset != from) std::memcpy(destination + offset, from, bytes);
  }
}

void copy_blocks(const std::byte* from, std::span<std::byte* const> destinations, std::size_t bytes) {
  if (destinations.size() == 1) return copy_to(destinations, from, 0, bytes);
  for (std::size_t offset = 0; offset < bytes; offset += kMaxBlockBytes) {
    copy_to(destinations, from + offset, offset, std::min(kMaxBlockBytes, bytes - offset));
  }
}

Outputs outputs_at(std::span<std::byte* const> destinations, std::size_t offset) {
  return {.first = destinations[0] + offset,
          .second = destinations.size() > 1 ? destinations[1] + offset : nullptr};
}

// One kernel does it all in one sweep: the common exchanges of two and four ranks.
bool fold_in_one_sweep(const FoldKernels& kernels, std::span<const Operand> operands,
                       std::span<std::byte* const> destinations, std::size_t elements) {
  if (destinations.size() > 2) return false;
  if (operands.size() == 2 && operands[0].merges == 0 && operands[1].merges == 1) {
    const std::array pair = {operands[0].data, operands[1].data};
    kernels.pair(pair.data(), outputs_at(destinations, 0), elements);
    return true;
  }
  if (operands.size() == 4 && is_balanced_quad(operands) && operands[3].merges == 2) {
    const std::array quad = {operands[0].data, operands[1].data, operands[2].data, operands[3].data};
    kernels.quad(quad.data(), outputs_at(destinations, 0), elements);
    return true;
  }
  return false;
}

void fold_blocks(const Combination& how, std::span<const Operand> operands,
                 std::span<std::byte* const> destinations, std::size_t elements) {
  const FoldKernels& kernels = fold_kernels(how.dtype, how.op);
  const std::size_t block = block_bytes(plan_merges(operands).partial_values);
  const std::size_t bytes = elements * size_of(how.dtype);
  BlockStack stack(kernels, block);
  for (std::size_t offset = 0; offset < bytes; offset += block) {
    const std::size_t count = std::min(block, bytes - offset) / size_of(how.dtype);
    const Outputs out = outputs_at(destinations, offset);
    const std::byte* value = out.first;
    if (operands.size() == 1) {
      value = operands[0].data + offset;
    } else {
      stack.evaluate(operands, offset, how.divide_by == 1 ? out : Outputs{.first = out.first}, count);
    }
    if (how.divide_by != 1) kernels.divide(value, out, count, how.divide_by);
    if (destinations.size() > 2)
      copy_to(destinations.subspan(2), out.first, offset, count * size_of(how.dtype));
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

ReduceOp parse_reduce_op(std::string_view name) {
  for (ReduceOp op : kAllOps) {
    if (name == name_of(op)) return op;
  }
  throw UsageError(fmt::format("unknown reduction '{}': use sum, average, min, max or product", name));
}

void combine(const Combination& how, std::span<const Operand> operands,
             std::span<std::byte* const> destinations, std::size_t elements) {
  LOCKSTEP_CHECK(how.divide_by >= 1, "a combination divides by zero");
  if (elements == 0 || destinations.empty()) return;
  if (how.divide_by == 1) {
    if (operands.size() == 1) {
      plan_merges(operands);
      return copy_blocks(operands[0].data, destinations, elements * size_of(how.dtype));
    }
    if (fold_in_one_sweep(fold_kernels(how.dtype, how.op), operands, destinations, elements)) return;
  }
  fold_blocks(how, operands, destinations, elements);
}

}  // namespace lockstep::kernels
