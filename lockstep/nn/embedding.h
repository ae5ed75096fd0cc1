// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "lockstep/nn/parameter.h"

namespace lockstep::nn {

// The rows of the table that `tokens` (int32, [batch, length]) name: [batch, length, width]. With a second
// table the row of each place is added, the first place being `first`.
at::Tensor embedding(const at::Tensor& tokens, const Parameter& table, const Parameter* places = nullptr,
                     std::int64_t first = 0);

}  // namespace lockstep::nn
