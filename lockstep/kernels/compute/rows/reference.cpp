// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/rows/reference.h"

#include "lockstep/kernels/compute/convert.h"

namespace lockstep::kernels {

std::vector<double> row_values(const ConstMatrix& matrix, std::size_t row) {
  std::vector<float> values(matrix.columns);
  to_floats(matrix.row(row), matrix.dtype, values);
  return {values.begin(), values.end()};
}

void store_row(const std::vector<double>& values, const Matrix& matrix, std::size_t row) {
  std::vector<float> rounded(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) rounded[i] = static_cast<float>(values[i]);
  from_floats(rounded, matrix.row(row), matrix.dtype);
}

void add_to(std::vector<double>& to, const std::vector<double>& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

void add_to(std::span<float> to, const std::vector<double>& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(to[i] + from[i]);
}

}  // namespace lockstep::kernels
