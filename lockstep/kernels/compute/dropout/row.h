// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace lockstep::kernels {

// Fills `numbers` with philox(counter, key), philox(counter + 1, key), ..., four each; the size is a multiple
// of 4. The 64-bit counter is the lower half of Philox's, `stream` the upper.
void random_numbers(std::uint64_t key, std::uint64_t stream, std::uint64_t counter,
                    std::span<std::uint32_t> numbers);

// out = in * scale where the number is at least `threshold`, otherwise 0. `out` may be `in`.
void keep_or_drop(std::span<const float> in, std::span<const std::uint32_t> numbers, std::uint32_t threshold,
                  float scale, std::span<float> out);

}  // namespace lockstep::kernels
