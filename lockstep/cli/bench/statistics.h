// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of the collectives benchmark. Pure.
#pragma once

#include <cstddef>
#include <span>

#include "lockstep/schedule/collective/collective.h"

namespace lockstep::cli {

struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};

// At least one sample. An even number of samples has the mean of the two in the middle as its median.
Spread spread_of(std::span<const double> samples);

// What algbw is multiplied with to get busbw, as nccl-tests define it: the share of the buffer that the
// busiest link must carry, so that the figure can be compared with the hardware's whatever the world is.
double bus_factor(schedule::Op op, int ranks);

// Gigabytes (1e9 bytes) per second; 0 for no bytes.
double gigabytes_per_second(std::size_t bytes, double time_us);

// How many bytes each rank copies in the `memcpy` opponent: half of what the rank that has most to do must at
// least read and write when every buffer is in reach of every rank. For all_reduce a rank reads its chunk
// of all buffers and writes it to all of them: it reads and writes `bytes`, as a copy of `bytes` does.
std::size_t memory_limit_bytes(schedule::Op op, std::size_t bytes, int ranks);

// How often to repeat something that takes `once_us` to fill a turn; at least 1, at most kMaxIterations.
inline constexpr std::size_t kMaxIterations = 1'000'000;
std::size_t iterations_for_turn(double once_us, double turn_us);

}  // namespace lockstep::cli
