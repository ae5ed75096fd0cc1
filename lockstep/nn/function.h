// SPDX-License-Identifier: Apache-2.0
//
// What the autograd functions of this folder share.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/custom_function.h>

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

}  // namespace lockstep::nn
