// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "lockstep/kernels/reduce.h"

namespace lockstep::kernels {

// What evaluating the merges of some operands on a stack takes.
struct MergePlan {
  std::size_t partial_values = 0;  // merged values, the result not among them, that are alive at once at most
};

// InternalError when the merges do not leave exactly one value, or the number of operands is out of range.
MergePlan plan_merges(std::span<const Operand> operands);

}  // namespace lockstep::kernels
