// SPDX-License-Identifier: Apache-2.0
//
// fp32 values as two halves: the nearest bf16, which a model computes with, and the 16 bits that it lacks. So
// master weights cost 2 bytes beside their working copy instead of 4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::kernels {

// upper[i] is the bf16 nearest to values[i], away from zero when two are; lower[i] the lower half of its
// bits. All runs have the same length. Every NaN becomes the one quiet NaN of float16.h.
void split(std::span<const float> values, std::span<std::uint16_t> upper, std::span<std::uint16_t> lower);

// The values that were split, bit by bit, and kNanFp32 for a NaN. Unspecified for upper halves that nobody
// has split.
void join(std::span<const std::uint16_t> upper, std::span<const std::uint16_t> lower,
          std::span<float> values);

}  // namespace lockstep::kernels
