// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/rows/rows.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/convert.h"

namespace lockstep::kernels {

RowBuffers& RowBuffers::mine() {
  thread_local RowBuffers buffers;
  return buffers;
}

std::span<float> RowBuffers::floats(Slot slot, std::size_t count) {
  std::vector<float>& memory = slots_[slot];
  if (memory.size() < count) memory.resize(count);
  return {memory.data(), count};
}

std::span<const float> RowBuffers::read(Slot slot, const ConstMatrix& matrix, std::size_t row) {
  if (matrix.dtype == DType::fp32) return {reinterpret_cast<const float*>(matrix.row(row)), matrix.columns};
  const std::span<float> copy = floats(slot, matrix.columns);
  to_floats(matrix.row(row), matrix.dtype, copy);
  return copy;
}

std::span<float> RowBuffers::target(Slot slot, const Matrix& matrix, std::size_t row) {
  if (matrix.dtype == DType::fp32) return {reinterpret_cast<float*>(matrix.row(row)), matrix.columns};
  return floats(slot, matrix.columns);
}

void RowBuffers::store(std::span<const float> values, const Matrix& matrix, std::size_t row) {
  if (matrix.dtype != DType::fp32) from_floats(values, matrix.row(row), matrix.dtype);
}

void check_floating(const char* what, const ConstMatrix& matrix) {
  const DType dtype = matrix.dtype;
  if (dtype == DType::fp32 || dtype == DType::bf16 || dtype == DType::fp16) return;
  throw UsageError(fmt::format("{} is of {} and must be of fp32, bf16 or fp16", what, name_of(dtype)));
}

void check_matrix(const char* what, const ConstMatrix& matrix, std::size_t rows, std::size_t columns,
                  DType dtype) {
  check_floating(what, matrix);
  if (matrix.rows == rows && matrix.columns == columns && matrix.dtype == dtype) return;
  throw UsageError(fmt::format("{} is {} x {} of {} and must be {} x {} of {}", what, matrix.rows,
                               matrix.columns, name_of(matrix.dtype), rows, columns, name_of(dtype)));
}

void check_like(const char* what, const ConstMatrix& matrix, const ConstMatrix& other) {
  check_matrix(what, matrix, other.rows, other.columns, other.dtype);
}

void check_count(const char* what, std::size_t count, std::size_t wanted) {
  if (count != wanted) throw UsageError(fmt::format("{} are {} and must be {}", what, count, wanted));
}

}  // namespace lockstep::kernels
