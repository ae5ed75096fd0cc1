// SPDX-License-Identifier: Apache-2.0
#include "lockstep/nn/tensor_view.h"

#include <optional>

#include "lockstep/base/error.h"

namespace lockstep::nn {
namespace {

// Elements from one row to the next; none when the tensor is not rows. The stride of a dimension of size 1
// means nothing, and ATen leaves anything there.
std::optional<std::int64_t> row_distance(const at::Tensor& tensor) {
  if (tensor.dim() == 0) return std::nullopt;
  const std::int64_t columns = tensor.size(-1);
  if (tensor.numel() == 0) return columns;
  if (columns != 1 && tensor.stride(-1) != 1) return std::nullopt;
  std::int64_t distance = columns;
  std::int64_t rows = 1;
  for (std::int64_t i = tensor.dim() - 2; i >= 0; --i) {
    if (tensor.size(i) == 1) continue;
    if (rows == 1) distance = tensor.stride(i);
    if (tensor.stride(i) != distance * rows) return std::nullopt;
    rows *= tensor.size(i);
  }
  if (distance < columns) return std::nullopt;
  return distance;
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
  return row_distance(tensor).has_value();
}

kernels::Matrix matrix_of(const at::Tensor& tensor) {
  const std::optional<std::int64_t> distance = row_distance(tensor);
  LOCKSTEP_CHECK(distance.has_value(), "a kernel was given a tensor whose rows are not rows in memory");
  const auto columns = static_cast<std::size_t>(tensor.size(-1));
  const std::size_t rows = columns == 0 ? 0 : static_cast<std::size_t>(tensor.numel()) / columns;
  return {static_cast<std::byte*>(tensor.data_ptr()), dtype_of(tensor), rows, columns,
          static_cast<std::size_t>(*distance)};
}

std::span<float> floats_of(const at::Tensor& tensor) {
  LOCKSTEP_CHECK(tensor.is_contiguous() && tensor.scalar_type() == at::kFloat);
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

}  // namespace lockstep::nn
