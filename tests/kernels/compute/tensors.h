// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lockstep/kernels/compute/matrix.h"

namespace lockstep::kernels {

inline constexpr DType kFloatTypes[] = {DType::fp32, DType::bf16, DType::fp16};

// A matrix that owns its memory, with some elements between its rows if asked for.
class Tensor {
 public:
  Tensor(DType dtype, std::size_t rows, std::size_t columns, std::size_t gap = 0);

  // Values around 0, of variance about 1, that depend on the seed only.
  static Tensor random(DType dtype, std::size_t rows, std::size_t columns, std::uint64_t seed,
                       std::size_t gap = 0);

  Matrix matrix() { return {memory_.data(), dtype_, rows_, columns_, columns_ + gap_}; }
  ConstMatrix matrix() const { return {memory_.data(), dtype_, rows_, columns_, columns_ + gap_}; }
  std::vector<float> values() const;  // without the gaps
  const std::vector<std::byte>& bytes() const { return memory_; }

 private:
  DType dtype_;
  std::size_t rows_, columns_, gap_;
  std::vector<std::byte> memory_;
};

// The largest difference, as a share of the largest value of `expected`.
double relative_error(const std::vector<float>& found, const std::vector<float>& expected);

// What a result of this dtype may differ from the reference by: rounding of results and of what is between.
double tolerance(DType dtype);

// Runs `kernel` with 1, 2 and 3 threads; the bytes it returns must be the same.
void expect_same_for_any_threads(const std::function<std::vector<std::byte>()>& kernel);

}  // namespace lockstep::kernels
