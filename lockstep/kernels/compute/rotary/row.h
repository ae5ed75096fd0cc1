// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace lockstep::kernels {

// Turns the pairs (i, i + half) of one head, half = cosines.size(); sines are multiplied by `direction`, 1 or
// -1. `out` may be `in`.
void rotate_head(std::span<const float> in, std::span<const float> cosines, std::span<const float> sines,
                 float direction, std::span<float> out);

}  // namespace lockstep::kernels
