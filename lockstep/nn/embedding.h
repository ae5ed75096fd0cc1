// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

#include "lockstep/nn/lanes.h"
#include "lockstep/nn/parameter.h"

namespace lockstep::nn {

// The rows of the table that `tokens` (int32, [batch, length]) name: [batch, length, width]. With a second
// table the row of each place is added, the first place being `first`.
at::Tensor embedding(const at::Tensor& tokens, const Parameter& table, const Parameter* places = nullptr,
                     std::int64_t first = 0);

// A table whose rows are divided among several lanes (lane_run). All have room for as many rows; where a lane
// has fewer, the last ones are padding that nobody asks for.
struct DividedTable {
  std::span<const Parameter* const> parts;  // of the lanes here
  std::int64_t vocabulary = 0;              // of all lanes
};
// With divided tokens the rows of the tokens that are held here (Lanes::held): [tokens, width].
at::Tensor embedding(const at::Tensor& tokens, const DividedTable& table, const Lanes& lanes);

}  // namespace lockstep::nn
