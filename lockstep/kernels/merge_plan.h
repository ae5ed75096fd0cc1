// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "lockstep/kernels/reduce.h"

namespace lockstep::kernels {

// The most merged values that are alive at once while the merges of the operands are evaluated on a stack.
// InternalError when the merges do not leave exactly one value, or the number of operands is out of range.
std::size_t partial_values(std::span<const Operand> operands);

// The height of the largest perfect tree, of at most `max_height`, that the first operands make: a kernel of
// that height may stand for their first merges. 0 when the first operand is not merged with the second.
unsigned leading_tree_height(std::span<const Operand> operands, unsigned max_height);

}  // namespace lockstep::kernels
