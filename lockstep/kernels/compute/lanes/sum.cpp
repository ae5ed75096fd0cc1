// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/lanes/sum.h"

#include <algorithm>

#include "lockstep/kernels/compute/lanes/operands.h"
#include "lockstep/kernels/compute/threads.h"

namespace lockstep::kernels {
namespace {

// Enough that the list of operands costs nothing beside the sum, few enough that all threads have work.
constexpr std::size_t kElementsTogether = 16384;

}  // namespace

void sum_lanes(DType dtype, std::span<const std::byte* const> lanes, std::byte* sum, std::size_t elements) {
  check_lanes(lanes.size());
  if (lanes.size() == 1 && lanes[0] == sum) return;
  parallel_for((elements + kElementsTogether - 1) / kElementsTogether, [&](std::size_t item) {
    const std::size_t first = item * kElementsTogether;
    std::byte* const to = sum + first * size_of(dtype);
    combine({.dtype = dtype}, tree_operands(lanes, first * size_of(dtype)), {&to, 1},
            std::min(kElementsTogether, elements - first));
  });
}

}  // namespace lockstep::kernels
