// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/reduce.h"

namespace lockstep::kernels {

inline void check_lanes(std::size_t lanes) {
  if (std::has_single_bit(lanes) && lanes <= kMaxOperands) return;
  throw UsageError(fmt::format("sum_lanes: {} lanes are no power of two up to {}", lanes, kMaxOperands));
}

// The lanes as operands of a combination, each from byte `first` on. After the operand with the index i as
// many nodes of the tree are complete as i + 1 can be halved.
inline std::vector<Operand> tree_operands(std::span<const std::byte* const> lanes, std::size_t first = 0) {
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    operands.push_back({lanes[i] + first, static_cast<std::uint8_t>(std::countr_zero(i + 1))});
  }
  return operands;
}

}  // namespace lockstep::kernels
