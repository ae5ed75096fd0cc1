// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/lanes/operands.h"
#include "lockstep/kernels/compute/lanes/sum.h"

namespace lockstep::kernels {

void sum_lanes_reference(DType dtype, std::span<const std::byte* const> lanes, std::byte* sum,
                         std::size_t elements) {
  check_lanes(lanes.size());
  combine_reference({.dtype = dtype}, tree_operands(lanes), {&sum, 1}, elements);
}

}  // namespace lockstep::kernels
