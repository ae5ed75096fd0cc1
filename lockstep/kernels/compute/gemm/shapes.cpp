// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/gemm/shapes.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::kernels {
namespace {

bool is_floating(DType dtype) {
  return dtype == DType::fp32 || dtype == DType::bf16 || dtype == DType::fp16;
}

}  // namespace

void check_shapes(const Factor& a, const Factor& b, const Matrix& c, Store store) {
  if (a.columns() != b.rows() || a.rows() != c.rows || b.columns() != c.columns) {
    throw UsageError(fmt::format("gemm: {} x {} times {} x {} does not give {} x {}", a.rows(), a.columns(),
                                 b.rows(), b.columns(), c.rows, c.columns));
  }
  const DType dtype = a.matrix.dtype;
  if (!is_floating(dtype) || b.matrix.dtype != dtype || (c.dtype != dtype && c.dtype != DType::fp32)) {
    throw UsageError(fmt::format("gemm: {} times {} into {} is not offered", name_of(dtype),
                                 name_of(b.matrix.dtype), name_of(c.dtype)));
  }
  if (store == Store::add && c.dtype != DType::fp32) {
    throw UsageError(fmt::format("gemm: sums are accumulated in fp32, not in {}", name_of(c.dtype)));
  }
}

void check_bias(const ConstMatrix& bias, const Factor& a, const Matrix& c) {
  if (bias.rows == 1 && bias.columns == c.columns && bias.dtype == a.matrix.dtype) return;
  throw UsageError(fmt::format("gemm: a bias of {} x {} ({}) does not fit {} columns of {}", bias.rows,
                               bias.columns, name_of(bias.dtype), c.columns, name_of(a.matrix.dtype)));
}

}  // namespace lockstep::kernels
