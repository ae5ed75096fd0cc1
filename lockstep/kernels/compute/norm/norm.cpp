// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/norm/norm.h"

#include <cmath>

#include "lockstep/kernels/compute/norm/check.h"
#include "lockstep/kernels/compute/norm/row.h"
#include "lockstep/kernels/compute/rows/rows.h"
#include "lockstep/kernels/compute/rows/sums.h"

namespace lockstep::kernels {

void norm_forward(const Norm& norm, const ConstMatrix& in, const Matrix& out,
                  const NormStatistics& statistics) {
  check_norm(norm, in, statistics);
  check_like("norm: the output", out, in);
  RowBuffers& mine = RowBuffers::mine();
  const auto weight = mine.read(RowBuffers::weight, norm.weight);
  const auto bias =
      norm.bias.data == nullptr ? std::span<const float>() : mine.read(RowBuffers::bias, norm.bias);
  for_each_row(in.rows, [&](std::size_t row) {
    RowBuffers& buffers = RowBuffers::mine();
    const auto values = buffers.read(RowBuffers::in, in, row);
    const auto results = buffers.target(RowBuffers::out, out, row);
    const float mean = norm.kind == NormKind::layer ? mean_of(values) : 0.0F;
    const float scale = 1.0F / std::sqrt(spread_of(values, mean) + norm.epsilon);
    normalize(values, mean, scale, weight, bias, results);
    RowBuffers::store(results, out, row);
    statistics.means[row] = mean;
    statistics.scales[row] = scale;
  });
}

void norm_backward(const Norm& norm, const ConstMatrix& in, const ConstMatrix& out_gradient,
                   const NormStatistics& statistics, const NormGradients& gradients) {
  check_norm(norm, in, statistics);
  check_norm_gradients(norm, in, out_gradient, gradients);
  const auto weight = RowBuffers::mine().read(RowBuffers::weight, norm.weight);
  const std::size_t columns = in.columns;
  const auto sums =
      sum_rows(in.rows, columns + gradients.bias.size(), [&](std::size_t index, std::span<float> partial) {
        RowBuffers& buffers = RowBuffers::mine();
        const NormRow row = {.in = buffers.read(RowBuffers::in, in, index),
                             .out_gradient = buffers.read(RowBuffers::gradient, out_gradient, index),
                             .mean = statistics.means[index],
                             .scale = statistics.scales[index]};
        NormMeans means =
            add_parameter_gradients(row, weight, partial.first(columns), partial.subspan(columns));
        if (norm.kind == NormKind::rms) means.of_g = 0;
        const auto before = gradients.store == Store::add
                                ? buffers.read(RowBuffers::second_in, gradients.in, index)
                                : std::span<const float>();
        const auto result = buffers.target(RowBuffers::out, gradients.in, index);
        input_gradient(row, weight, means, before, result);
        RowBuffers::store(result, gradients.in, index);
      });
  add(gradients.weight, sums.first(columns), gradients.weight);
  add(gradients.bias, sums.subspan(columns), gradients.bias);
}

}  // namespace lockstep::kernels
