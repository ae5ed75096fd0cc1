// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/tensor_view.h"

#include <optional>

#include "lockstep/base/error.h"

namespace lockstep::nn {
namespace {

// How far apart rows are, or none when they are not equally far apart. A dimension of one element may have
// any stride, also in a tensor that libtorch calls contiguous.
std::optional<std::size_t> row_stride(const at::Tensor& tensor) {
  if (tensor.dim() == 0 || (tensor.stride(-1) != 1 && tensor.size(-1) != 1)) return std::nullopt;
  std::optional<std::int64_t> stride;  // of the innermost dimension of rows
  std::int64_t next = 0;               // that of the dimension around those seen so far
  for (std::int64_t i = tensor.dim() - 1; i-- > 0;) {
    if (tensor.size(i) == 1) continue;
    if (!stride) {
      stride = tensor.stride(i);
    } else if (tensor.stride(i) != next) {
      return std::nullopt;
    }
    next = tensor.stride(i) * tensor.size(i);
  }
  return static_cast<std::size_t>(stride.value_or(tensor.size(-1)));
}

}  // namespace

DType dtype_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return DType::fp32;
    case at::kBFloat16:
      return DType::bf16;
    case at::kHalf:
      return DType::fp16;
    case at::kDouble:
      return DType::fp64;
    case at::kInt:
      return DType::int32;
    case at::kLong:
      return DType::int64;
    case at::kByte:
      return DType::uint8;
    default:
      break;
  }
  LOCKSTEP_CHECK(false, "a tensor has a dtype that crosses no line");
  return DType::fp32;
}

at::ScalarType scalar_type_of(DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return at::kFloat;
    case DType::bf16:
      return at::kBFloat16;
    case DType::fp16:
      return at::kHalf;
    case DType::fp64:
      return at::kDouble;
    case DType::int32:
      return at::kInt;
    case DType::int64:
      return at::kLong;
    case DType::uint8:
      return at::kByte;
  }
  return at::kFloat;
}

bool has_kernels(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  return tensor.is_cpu() && (type == at::kFloat || type == at::kBFloat16 || type == at::kHalf);
}

bool is_rows(const at::Tensor& tensor) {
  return row_stride(tensor).has_value();
}

kernels::Matrix matrix_of(const at::Tensor& tensor) {
  const std::optional<std::size_t> stride = row_stride(tensor);
  LOCKSTEP_CHECK(stride.has_value(), "a kernel was given a tensor whose rows are not rows in memory");
  const auto columns = static_cast<std::size_t>(tensor.size(-1));
  const std::size_t rows = columns == 0 ? 0 : static_cast<std::size_t>(tensor.numel()) / columns;
  return {static_cast<std::byte*>(tensor.data_ptr()), dtype_of(tensor), rows, columns, *stride};
}

std::span<float> floats_of(const at::Tensor& tensor) {
  LOCKSTEP_CHECK(tensor.is_contiguous() && tensor.scalar_type() == at::kFloat);
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

}  // namespace lockstep::nn
