// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/compute/tensors.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "lockstep/kernels/compute/convert.h"
#include "lockstep/kernels/compute/threads.h"

namespace lockstep::kernels {

Tensor::Tensor(DType dtype, std::size_t rows, std::size_t columns, std::size_t gap)
    : dtype_(dtype),
      rows_(rows),
      columns_(columns),
      gap_(gap),
      memory_(rows * (columns + gap) * size_of(dtype), std::byte{0x5A}) {}

Tensor Tensor::random(DType dtype, std::size_t rows, std::size_t columns, std::uint64_t seed,
                      std::size_t gap) {
  Tensor tensor(dtype, rows, columns, gap);
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> row(columns);
  for (std::size_t i = 0; i < rows; ++i) {
    std::generate(row.begin(), row.end(), [&] { return normal(generator); });
    from_floats(row, tensor.matrix().row(i), dtype);
  }
  return tensor;
}

std::vector<float> Tensor::values() const {
  std::vector<float> all(rows_ * columns_);
  for (std::size_t i = 0; i < rows_; ++i)
    to_floats(matrix().row(i), dtype_, std::span(all).subspan(i * columns_, columns_));
  return all;
}

double relative_error(const std::vector<float>& found, const std::vector<float>& expected) {
  EXPECT_EQ(found.size(), expected.size());
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(double{expected[i]}));
    const double here = std::abs(double{found[i]} - double{expected[i]});
    if (std::isnan(here)) return here;  // which is below no tolerance
    difference = std::max(difference, here);
  }
  return largest == 0 ? difference : difference / largest;
}

double tolerance(DType dtype) {
  return dtype == DType::bf16 ? 1.5e-2 : dtype == DType::fp16 ? 2e-3 : 2e-6;
}

void expect_same_for_any_threads(const std::function<std::vector<std::byte>()>& kernel) {
  const int before = threads();
  set_threads(1);
  const std::vector<std::byte> expected = kernel();
  for (int count : {2, 3}) {
    set_threads(count);
    EXPECT_EQ(kernel(), expected) << "with " << count << " threads";
  }
  set_threads(before);
}

}  // namespace lockstep::kernels
