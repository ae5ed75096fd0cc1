// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/bias/bias.h"

#include "lockstep/kernels/compute/bias/check.h"
#include "lockstep/kernels/compute/rows/rows.h"
#include "lockstep/kernels/compute/rows/sums.h"

namespace lockstep::kernels {

void add_bias(const ConstMatrix& in, const ConstMatrix& bias, const Matrix& out) {
  check_add_bias(in, bias, out);
  const auto biases = RowBuffers::mine().read(RowBuffers::bias, bias);
  for_each_piece(in.rows, in.columns, [&](const Piece& piece) {
    RowBuffers& buffers = RowBuffers::mine();
    const auto result = buffers.target(RowBuffers::out, piece.of(out));
    add(buffers.read(RowBuffers::in, piece.of(in)), biases.subspan(piece.first, piece.count), result);
    RowBuffers::store(result, piece.of(out));
  });
}

void bias_backward(const ConstMatrix& out_gradient, std::span<float> bias_gradient) {
  check_bias_gradient(out_gradient, bias_gradient);
  const auto sums =
      sum_rows(out_gradient.rows, out_gradient.columns, [&](std::size_t row, std::span<float> partial) {
        add(partial, RowBuffers::mine().read(RowBuffers::gradient, out_gradient, row), partial);
      });
  add(bias_gradient, sums, bias_gradient);
}

void add_matrices(const ConstMatrix& a, const ConstMatrix& b, const Matrix& out) {
  check_sum(a, b, out);
  for_each_piece(a.rows, a.columns, [&](const Piece& piece) {
    RowBuffers& buffers = RowBuffers::mine();
    const auto result = buffers.target(RowBuffers::out, piece.of(out));
    add(buffers.read(RowBuffers::in, piece.of(a)), buffers.read(RowBuffers::second_in, piece.of(b)), result);
    RowBuffers::store(result, piece.of(out));
  });
}

}  // namespace lockstep::kernels
