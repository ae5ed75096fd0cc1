// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/rows/reference.h"

#include <cmath>

#include "lockstep/kernels/compute/norm/check.h"
#include "lockstep/kernels/compute/norm/norm.h"
#include "lockstep/kernels/compute/rows/rows.h"

namespace lockstep::kernels {
namespace {

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) result[i] = a[i] * b[i];
  return result;
}

// values = (values - mean) * scale
void normalize(std::vector<double>& values, double mean, double scale) {
  for (double& value : values) value = (value - mean) * scale;
}

}  // namespace

void norm_forward_reference(const Norm& norm, const ConstMatrix& in, const Matrix& out,
                            const NormStatistics& statistics) {
  check_norm(norm, in, statistics);
  check_like("norm: the output", out, in);
  const std::vector<double> weight = row_values(norm.weight, 0);
  const std::vector<double> bias =
      norm.bias.data == nullptr ? std::vector<double>(in.columns, 0.0) : row_values(norm.bias, 0);
  for (std::size_t row = 0; row < in.rows; ++row) {
    std::vector<double> values = row_values(in, row);
    const double mean = norm.kind == NormKind::layer ? mean_of(values) : 0.0;
    normalize(values, mean, 1.0);
    const double scale = 1.0 / std::sqrt(mean_of(product(values, values)) + double{norm.epsilon});
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = values[i] * scale * weight[i] + bias[i];
    store_row(values, out, row);
    statistics.means[row] = static_cast<float>(mean);
    statistics.scales[row] = static_cast<float>(scale);
  }
}

void norm_backward_reference(const Norm& norm, const ConstMatrix& in, const ConstMatrix& out_gradient,
                             const NormStatistics& statistics, const NormGradients& gradients) {
  check_norm(norm, in, statistics);
  check_norm_gradients(norm, in, out_gradient, gradients);
  const std::vector<double> weight = row_values(norm.weight, 0);
  std::vector<double> weight_sums(in.columns, 0.0);
  std::vector<double> bias_sums(in.columns, 0.0);
  for (std::size_t row = 0; row < in.rows; ++row) {
    std::vector<double> n = row_values(in, row);
    normalize(n, statistics.means[row], statistics.scales[row]);
    const std::vector<double> dout = row_values(out_gradient, row);
    const std::vector<double> g = product(dout, weight);
    const double mean_g = norm.kind == NormKind::layer ? mean_of(g) : 0.0;
    const double mean_gn = mean_of(product(g, n));
    std::vector<double> result =
        gradients.store == Store::add ? row_values(gradients.in, row) : std::vector<double>(in.columns, 0.0);
    for (std::size_t i = 0; i < in.columns; ++i) {
      result[i] += statistics.scales[row] * (g[i] - mean_g - n[i] * mean_gn);
      weight_sums[i] += dout[i] * n[i];
      bias_sums[i] += dout[i];
    }
    store_row(result, gradients.in, row);
  }
  add_to(gradients.weight, weight_sums);
  add_to(gradients.bias, bias_sums);
}

}  // namespace lockstep::kernels
