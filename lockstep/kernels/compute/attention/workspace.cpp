// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/attention/workspace.h"

#include "lockstep/kernels/compute/convert.h"
#include "lockstep/kernels/compute/gemm/onednn.h"

namespace lockstep::kernels {

AttentionWorkspace& AttentionWorkspace::mine() {
  thread_local AttentionWorkspace workspace;
  return workspace;
}

Matrix AttentionWorkspace::matrix(Slot slot, DType dtype, std::size_t rows, std::size_t columns) {
  std::vector<std::byte>& memory = slots_[slot];
  const std::size_t bytes = rows * columns * size_of(dtype);
  if (memory.size() < bytes) memory.resize(bytes);
  return matrix_of(memory.data(), dtype, rows, columns);
}

std::span<float> AttentionWorkspace::floats(Slot slot, std::size_t count) {
  return float_row(matrix(slot, DType::fp32, 1, count), 0);
}

ConstMatrix AttentionWorkspace::multipliable(Slot slot, ConstMatrix values) {
  if (multiplied_as(values.dtype) == values.dtype) return values;
  const Matrix wide = matrix(slot, DType::fp32, values.rows, values.columns);
  for (std::size_t row = 0; row < values.rows; ++row)
    to_floats(values.row(row), values.dtype, float_row(wide, row));
  return wide;
}

ConstMatrix AttentionWorkspace::narrowed(Slot slot, const Matrix& values, DType dtype) {
  if (dtype == DType::fp32) return values;
  const Matrix narrow = matrix(slot, dtype, values.rows, values.columns);
  for (std::size_t row = 0; row < values.rows; ++row)
    from_floats(float_row(values, row), narrow.row(row), dtype);
  return narrow;
}

}  // namespace lockstep::kernels
