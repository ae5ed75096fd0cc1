// SPDX-License-Identifier: Apache-2.0
//
// What the autograd functions of this folder share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/custom_function.h>

#include "lockstep/base/error.h"
#include "lockstep/nn/lanes.h"
#include "lockstep/nn/parameter.h"
#include "lockstep/nn/tensor_view.h"

namespace lockstep::nn {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// How an autograd function takes what may be missing: an optional of libtorch 1.x, or the standard one
// of 2.x.
using OptionalTensor = torch::autograd::optional_variable_list::value_type;
inline OptionalTensor value_of(const Parameter* parameter) {
  return parameter != nullptr ? OptionalTensor(parameter->value) : OptionalTensor();
}
inline OptionalTensor gradient_of(const Parameter* parameter) {
  return parameter != nullptr ? OptionalTensor(parameter->gradient) : OptionalTensor();
}

// How a value that is no tensor gets from the forward to the backward pass.
template <typename T>
struct Kept : torch::CustomClassHolder {
  explicit Kept(T what) : value(std::move(what)) {}
  T value;
};
template <typename T>
at::IValue keep(T value) {
  return at::IValue::make_capsule(c10::make_intrusive<Kept<T>>(std::move(value)));
}
// The context must hold on to it meanwhile.
template <typename T>
const T& kept(const at::IValue& saved) {
  return static_cast<const Kept<T>&>(*saved.toCapsule()).value;
}

// The sizes of `tensor` with another last one.
inline std::vector<std::int64_t> sizes_with_last(const at::Tensor& tensor, std::int64_t last) {
  std::vector<std::int64_t> sizes = tensor.sizes().vec();
  sizes.back() = last;
  return sizes;
}

// The tensor itself if its rows lie in memory as kernels want them, otherwise a copy.
inline at::Tensor as_rows(const at::Tensor& tensor) {
  return is_rows(tensor) ? tensor : tensor.contiguous();
}

// The rows of some tokens, of a matrix or of a const one.
template <typename Matrix>
Matrix rows_of(const Matrix& all, const LaneRun& run) {
  return all.part(static_cast<std::size_t>(run.first), static_cast<std::size_t>(run.count), 0, all.columns);
}

// Where gradients of a parameter that lanes share go: one tensor for each lane here.
inline std::vector<at::Tensor> gradients_by_lane(const Parameter& parameter, const Lanes& lanes) {
  if (!lanes.several()) return {parameter.gradient};
  LOCKSTEP_CHECK(static_cast<int>(parameter.by_lane.size()) == lanes.here(),
                 parameter.name + " is shared and has no gradient for each lane");
  return parameter.by_lane;
}

// Several lanes are computed by our kernels only: otherwise UsageError.
inline void require_kernels_for_lanes(const at::Tensor& tensor, const Lanes& lanes) {
  if (!lanes.several() || has_kernels(tensor)) return;
  throw UsageError(
      std::string("several tensor lanes (parallelism.tensor_lanes) are computed in fp32, bf16 or fp16 in CPU "
                  "memory, but a tensor is ") +
      c10::toString(tensor.scalar_type()) + " on " + tensor.device().str());
}

}  // namespace lockstep::nn
