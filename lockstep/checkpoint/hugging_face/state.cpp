// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/hugging_face/state.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/convert.h"

namespace lockstep::checkpoint {
namespace {

std::vector<std::int64_t> shape_in_file(const StateTensor& tensor) {
  std::vector<std::int64_t> shape = tensor.shape;
  if (tensor.transposed) std::reverse(shape.begin(), shape.end());
  return shape;
}

// `to` gets the columns of `from` as its rows.
void transpose(std::span<const float> from, std::int64_t rows, std::int64_t columns, std::span<float> to) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      to[static_cast<std::size_t>(column * rows + row)] =
          from[static_cast<std::size_t>(row * columns + column)];
    }
  }
}

void fill(const StateTensor& tensor, DType dtype, Bytes bytes) {
  if (!tensor.transposed) return kernels::from_floats(tensor.values, bytes.data(), dtype);
  std::vector<float> turned(tensor.values.size());
  transpose(tensor.values, tensor.shape[0], tensor.shape[1], turned);
  kernels::from_floats(turned, bytes.data(), dtype);
}

[[noreturn]] void refuse(const ModelFolder& folder, const std::string& tensor, const std::string& why) {
  throw UsageError(fmt::format("{}: tensor '{}' {}", folder.path(), tensor, why));
}

void read_tensor(const ModelFolder& folder, const std::string& name, const StateTensor& tensor) {
  const auto [file, stored] = folder.find(name);
  if (stored->shape != shape_in_file(tensor)) {
    refuse(folder, name,
           fmt::format("has the shape [{}], but the model needs [{}]: check the keys of [model]",
                       fmt::join(stored->shape, ", "), fmt::join(shape_in_file(tensor), ", ")));
  }
  const std::optional<DType> dtype = dtype_of_type(stored->type);
  if (dtype != DType::fp32 && dtype != DType::bf16 && dtype != DType::fp16) {
    refuse(folder, name, fmt::format("is of type {}: lockstep reads F32, BF16 and F16", stored->type));
  }
  if (tensor.values.empty()) return;
  const ConstBytes bytes = file->bytes_of(*stored);
  const std::vector<std::byte> aligned(bytes.begin(), bytes.end());
  if (!tensor.transposed) return kernels::to_floats(aligned.data(), *dtype, tensor.values);
  std::vector<float> turned(tensor.values.size());
  kernels::to_floats(aligned.data(), *dtype, turned);
  transpose(turned, tensor.shape[1], tensor.shape[0], tensor.values);
}

}  // namespace

OutgoingTensor outgoing(const StateTensor& tensor, DType dtype) {
  return {.name = tensor.name,
          .dtype = dtype,
          .shape = shape_in_file(tensor),
          .fill = [tensor, dtype](Bytes bytes) { fill(tensor, dtype, bytes); }};
}

void read_state(const ModelFolder& folder, std::span<const StateTensor> tensors,
                const std::function<bool(std::string_view)>& may_be_ignored) {
  std::set<std::string> used;
  for (const StateTensor& tensor : tensors) {
    const bool has_name = tensor.other_name.empty() || folder.find(tensor.name).tensor != nullptr;
    const std::string& name = has_name ? tensor.name : tensor.other_name;
    if (folder.find(name).tensor == nullptr) refuse(folder, tensor.name, "is missing");
    read_tensor(folder, name, tensor);
    used.insert(name);
  }
  for (const std::string& name : folder.names()) {
    if (!used.contains(name) && !may_be_ignored(name)) {
      refuse(folder, name, "is not a parameter of the model: check the keys of [model]");
    }
  }
}

}  // namespace lockstep::checkpoint
