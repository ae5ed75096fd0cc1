// SPDX-License-Identifier: Apache-2.0
//
// What kernels are tried with: the sizes of a gpt2-124m with 1024 tokens, and values to fill them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/base/dtype.h"
#include "lockstep/kernels/compute/matrix.h"

namespace lockstep::cli {

inline constexpr std::size_t kTokens = 1024;
inline constexpr std::size_t kWidth = 768;
inline constexpr std::size_t kFfn = 3072;

// A matrix of values between -2 and 2 that repeat without a visible pattern.
class Values {
 public:
  Values(DType dtype, std::size_t rows, std::size_t columns);
  kernels::Matrix matrix() { return kernels::matrix_of(memory_.data(), dtype_, rows_, columns_); }
  kernels::Matrix columns(std::size_t first, std::size_t count) {
    return matrix().part(0, rows_, first, count);
  }
  std::span<float> floats() {
    return {reinterpret_cast<float*>(memory_.data()), memory_.size() / sizeof(float)};
  }
  std::size_t bytes() const { return memory_.size(); }

 private:
  DType dtype_;
  std::size_t rows_, columns_;
  std::vector<std::byte> memory_;
};

// For several owners: each copy of a kernel's call holds its operands.
std::shared_ptr<Values> values(DType dtype, std::size_t rows, std::size_t columns);

}  // namespace lockstep::cli
