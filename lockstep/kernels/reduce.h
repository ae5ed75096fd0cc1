// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of reductions. bf16 and fp16 are combined in fp32 and rounded to nearest even after every
// combination, so a partial result has the same bits whether it stays in a register or crosses a wire.
// Integers wrap around. min and max: a NaN on either side gives a NaN; -0 is less than +0. A NaN that is
// computed is always the same quiet NaN (float16.h), whatever the operands' and on every processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "lockstep/base/dtype.h"

namespace lockstep::kernels {

// The values appear in frames: never renumber.
enum class ReduceOp : std::uint8_t { sum = 0, average = 1, min = 2, max = 3, product = 4 };

std::string_view name_of(ReduceOp op);

// One operand of a combination; see schedule::Source for what `merges` means.
struct Operand {
  const std::byte* data = nullptr;
  std::uint8_t merges = 0;
};

struct Combination {
  DType dtype = DType::fp32;
  ReduceOp op = ReduceOp::sum;  // average combines as sum
  std::size_t divide_by = 1;    // applied to the value when it is not 1: finishes an average.
                                // Floats divide in fp32 (fp64 in fp64); integers truncate towards zero.
};

// Combines `elements` elements of each operand and writes the value to every destination. A destination may
// be the same address as an operand or overlap none. At least one operand; at most kMaxOperands; one operand
// and no division is a copy. Throughput: one pass over memory whatever the number of operands and
// destinations.
inline constexpr std::size_t kMaxOperands = 4096;
void combine(const Combination& how, std::span<const Operand> operands,
             std::span<std::byte* const> destinations, std::size_t elements);

// The same, element by element in plain C++: the twin that tests compare with.
void combine_reference(const Combination& how, std::span<const Operand> operands,
                       std::span<std::byte* const> destinations, std::size_t elements);

}  // namespace lockstep::kernels
