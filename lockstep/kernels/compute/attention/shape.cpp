// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/attention/shape.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::kernels {
namespace {

void check_matrix(ConstMatrix matrix, std::size_t rows, std::size_t columns, DType dtype, const char* name) {
  if (matrix.rows == rows && matrix.columns == columns && matrix.dtype == dtype) return;
  throw UsageError(fmt::format("attention: {} is {} x {} of {} and must be {} x {} of {}", name, matrix.rows,
                               matrix.columns, name_of(matrix.dtype), rows, columns, name_of(dtype)));
}

}  // namespace

void check_attention(const AttentionShape& shape, const AttentionInputs& inputs, ConstMatrix out,
                     std::size_t log_sums) {
  if (shape.kv_heads == 0 || shape.heads % shape.kv_heads != 0) {
    throw UsageError(fmt::format("attention: {} query heads cannot share {} key heads evenly", shape.heads,
                                 shape.kv_heads));
  }
  const DType dtype = inputs.q.dtype;
  check_matrix(inputs.q, shape.rows(), shape.heads * shape.width, dtype, "q");
  check_matrix(inputs.k, shape.rows(), shape.kv_heads * shape.width, dtype, "k");
  check_matrix(inputs.v, shape.rows(), shape.kv_heads * shape.width, dtype, "v");
  check_matrix(out, shape.rows(), shape.heads * shape.width, dtype, "out");
  if (log_sums != shape.rows() * shape.heads) {
    throw UsageError(fmt::format("attention: {} log sums are given for {} rows of {} heads", log_sums,
                                 shape.rows(), shape.heads));
  }
}

}  // namespace lockstep::kernels
