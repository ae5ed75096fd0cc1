// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::metrics {

struct Progress {
  std::int64_t step = 0;  // finished
  std::int64_t total_steps = 0;
  double loss = 0.0;
  double grad_norm = 0.0;
  double learning_rate = 0.0;
  double tokens_per_s = 0.0;  // of all ranks
  std::optional<double> mfu;  // share of the measured peak; none when it was not measured
  std::uint64_t memory_bytes = 0;
  std::optional<double> seconds_left;
};

// The line of a log: "step 120/600  loss 3.1416  grad 0.812  lr 9.80e-04  3,170 tok/s  MFU 54.1%  1.24 GiB
// 2:31 left".
std::string progress_line(const Progress& progress);

// The same in at most `columns` letters. What does not fit is written with fewer digits and spaces:
// "120/600 loss 3.142 grad 0.81 lr 9.8e-4 3,170 tok/s MFU 54% 1.2G 2:31 left". Only then the least important
// parts go first, the step last.
std::string progress_line(const Progress& progress, int columns);

// 3.14159 with 4 digits: "3.1416". A NaN has no sign: that says nothing, and x86 sets it.
std::string format_number(double value, int digits);

// 7 s: "0:07"; hours in front when there are any.
std::string format_duration(double seconds);

// "812 MiB", "1.24 GiB"
std::string format_memory(std::uint64_t bytes);

// Columns of the terminal behind a file descriptor; 0 when there is none.
int terminal_columns(int descriptor);

}  // namespace lockstep::metrics
