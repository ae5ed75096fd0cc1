// SPDX-License-Identifier: Apache-2.0
//
// How kernels see tensors: rows of elements in memory, nothing else. fp32, bf16 or fp16; kernels compute in
// fp32.
#pragma once

#include <cstddef>

#include "lockstep/base/dtype.h"

namespace lockstep::kernels {

// Row-major; `stride` elements lie between the starts of two rows (at least `columns`).
template <typename Byte>
struct BasicMatrix {
  Byte* data = nullptr;
  DType dtype = DType::fp32;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t stride = 0;

  Byte* row(std::size_t index) const { return data + index * stride * size_of(dtype); }
  BasicMatrix part(std::size_t first_row, std::size_t row_count, std::size_t first_column,
                   std::size_t column_count) const {
    return {row(first_row) + first_column * size_of(dtype), dtype, row_count, column_count, stride};
  }
  // Like a pointer to const, from a pointer.
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator BasicMatrix<const Byte>() const { return {data, dtype, rows, columns, stride}; }
};
using Matrix = BasicMatrix<std::byte>;
using ConstMatrix = BasicMatrix<const std::byte>;

// Rows that follow each other without gaps.
inline Matrix matrix_of(void* data, DType dtype, std::size_t rows, std::size_t columns) {
  return {static_cast<std::byte*>(data), dtype, rows, columns, columns};
}
inline ConstMatrix matrix_of(const void* data, DType dtype, std::size_t rows, std::size_t columns) {
  return {static_cast<const std::byte*>(data), dtype, rows, columns, columns};
}

}  // namespace lockstep::kernels
