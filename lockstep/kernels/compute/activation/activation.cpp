// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/activation/activation.h"

#include "lockstep/kernels/compute/activation/check.h"
#include "lockstep/kernels/compute/activation/row.h"
#include "lockstep/kernels/compute/rows/rows.h"

namespace lockstep::kernels {

void gelu_forward(const ConstMatrix& in, const Matrix& out) {
  check_gelu(in, out);
  for_each_piece(in.rows, in.columns, [&](const Piece& piece) {
    RowBuffers& buffers = RowBuffers::mine();
    const auto result = buffers.target(RowBuffers::out, piece.of(out));
    gelu(buffers.read(RowBuffers::in, piece.of(in)), result);
    RowBuffers::store(result, piece.of(out));
  });
}

void gelu_backward(const ConstMatrix& in, const ConstMatrix& out_gradient, const Matrix& in_gradient) {
  check_gelu_gradients(in, out_gradient, in_gradient);
  for_each_piece(in.rows, in.columns, [&](const Piece& piece) {
    RowBuffers& buffers = RowBuffers::mine();
    const auto result = buffers.target(RowBuffers::out, piece.of(in_gradient));
    gelu_gradient(buffers.read(RowBuffers::in, piece.of(in)),
                  buffers.read(RowBuffers::gradient, piece.of(out_gradient)), result);
    RowBuffers::store(result, piece.of(in_gradient));
  });
}

void swiglu_forward(const SwigluInputs& inputs, const Matrix& out) {
  check_swiglu(inputs, out);
  for_each_piece(out.rows, out.columns, [&](const Piece& piece) {
    RowBuffers& buffers = RowBuffers::mine();
    const auto result = buffers.target(RowBuffers::out, piece.of(out));
    swiglu({.gate = buffers.read(RowBuffers::in, piece.of(inputs.gate)),
            .up = buffers.read(RowBuffers::second_in, piece.of(inputs.up))},
           result);
    RowBuffers::store(result, piece.of(out));
  });
}

void swiglu_backward(const SwigluInputs& inputs, const ConstMatrix& out_gradient,
                     const SwigluGradients& gradients) {
  check_swiglu_gradients(inputs, out_gradient, gradients);
  for_each_piece(out_gradient.rows, out_gradient.columns, [&](const Piece& piece) {
    RowBuffers& buffers = RowBuffers::mine();
    const auto gate = buffers.target(RowBuffers::out, piece.of(gradients.gate));
    const auto up = buffers.target(RowBuffers::second_out, piece.of(gradients.up));
    swiglu_gradients({.gate = buffers.read(RowBuffers::in, piece.of(inputs.gate)),
                      .up = buffers.read(RowBuffers::second_in, piece.of(inputs.up))},
                     buffers.read(RowBuffers::gradient, piece.of(out_gradient)), gate, up);
    RowBuffers::store(gate, piece.of(gradients.gate));
    RowBuffers::store(up, piece.of(gradients.up));
  });
}

}  // namespace lockstep::kernels
