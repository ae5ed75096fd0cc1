// SPDX-License-Identifier: Apache-2.0
//
// The sum over tensor lanes (docs/algorithms.md, "Tensor lanes"): a perfect binary tree, each node rounded to
// the dtype, as exact collectives go on with it between ranks.
#pragma once

#include <cstddef>
#include <span>

#include "lockstep/base/dtype.h"

namespace lockstep::kernels {

// sum = the sum of `elements` elements of each lane. The lanes are a power of two, at most kMaxOperands
// (reduce.h). `sum` may be one of them and otherwise overlaps none. UsageError when the lanes are no power of
// two.
void sum_lanes(DType dtype, std::span<const std::byte* const> lanes, std::byte* sum, std::size_t elements);

// The same in plain C++: the twin that tests compare with.
void sum_lanes_reference(DType dtype, std::span<const std::byte* const> lanes, std::byte* sum,
                         std::size_t elements);

}  // namespace lockstep::kernels
