// SPDX-License-Identifier: Apache-2.0
//
// Where the libtorch line is crossed: tensors as the matrices and spans that kernels see. Views share memory
// with the tensor and must not outlive it.
#pragma once

#include <span>

#include <ATen/core/Tensor.h>

#include "lockstep/base/dtype.h"
#include "lockstep/kernels/compute/matrix.h"

namespace lockstep::nn {

// InternalError for a dtype that has no equal on the other side.
DType dtype_of(const at::Tensor& tensor);
at::ScalarType scalar_type_of(DType dtype);

// Whether our kernels can compute on it: CPU memory of fp32, bf16 or fp16. Everything else goes through ATen.
bool has_kernels(const at::Tensor& tensor);

// All dimensions but the last are rows. The last must be contiguous and rows equally far apart (is_rows()
// tells).
bool is_rows(const at::Tensor& tensor);
kernels::Matrix matrix_of(const at::Tensor& tensor);

// The elements of a contiguous fp32 tensor.
std::span<float> floats_of(const at::Tensor& tensor);

}  // namespace lockstep::nn
