// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/activation/activation.h"

#include "lockstep/kernels/compute/activation/check.h"
#include "lockstep/kernels/compute/activation/row.h"
#include "lockstep/kernels/compute/rows/rows.h"

namespace lockstep::kernels {

void gelu_forward(const ConstMatrix& in, const Matrix& out) {
  check_gelu(in, out);
  for_each_row(in.rows, [&](std::size_t row) {
    RowBuffers& buffers = RowBuffers::mine();
    const auto result = buffers.target(RowBuffers::out, out, row);
    gelu(buffers.read(RowBuffers::in, in, row), result);
    RowBuffers::store(result, out, row);
  });
}

void gelu_backward(const ConstMatrix& in, const ConstMatrix& out_gradient, const Matrix& in_gradient) {
  check_gelu_gradients(in, out_gradient, in_gradient);
  for_each_row(in.rows, [&](std::size_t row) {
    RowBuffers& buffers = RowBuffers::mine();
    const auto result = buffers.target(RowBuffers::out, in_gradient, row);
    gelu_gradient(buffers.read(RowBuffers::in, in, row),
                  buffers.read(RowBuffers::gradient, out_gradient, row), result);
    RowBuffers::store(result, in_gradient, row);
  });
}

void swiglu_forward(const SwigluInputs& inputs, const Matrix& out) {
  check_swiglu(inputs, out);
  for_each_row(out.rows, [&](std::size_t row) {
    RowBuffers& buffers = RowBuffers::mine();
    const auto result = buffers.target(RowBuffers::out, out, row);
    swiglu({.gate = buffers.read(RowBuffers::in, inputs.gate, row),
            .up = buffers.read(RowBuffers::second_in, inputs.up, row)},
           result);
    RowBuffers::store(result, out, row);
  });
}

void swiglu_backward(const SwigluInputs& inputs, const ConstMatrix& out_gradient,
                     const SwigluGradients& gradients) {
  check_swiglu_gradients(inputs, out_gradient, gradients);
  for_each_row(out_gradient.rows, [&](std::size_t row) {
    RowBuffers& buffers = RowBuffers::mine();
    const auto gate = buffers.target(RowBuffers::out, gradients.gate, row);
    const auto up = buffers.target(RowBuffers::second_out, gradients.up, row);
    swiglu_gradients({.gate = buffers.read(RowBuffers::in, inputs.gate, row),
                      .up = buffers.read(RowBuffers::second_in, inputs.up, row)},
                     buffers.read(RowBuffers::gradient, out_gradient, row), gate, up);
    RowBuffers::store(gate, gradients.gate, row);
    RowBuffers::store(up, gradients.up, row);
  });
}

}  // namespace lockstep::kernels
