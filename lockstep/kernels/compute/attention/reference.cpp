// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "lockstep/kernels/compute/attention/attention.h"
#include "lockstep/kernels/compute/attention/shape.h"
#include "lockstep/kernels/compute/convert.h"

namespace lockstep::kernels {
namespace {

using Rows = std::vector<std::vector<double>>;

Rows rows_of(const AttentionShape& shape, ConstMatrix all, std::size_t sequence, std::size_t head) {
  const ConstMatrix values = head_of(shape, all, sequence, head);
  Rows rows(values.rows);
  std::vector<float> row(values.columns);
  for (std::size_t i = 0; i < values.rows; ++i) {
    to_floats(values.row(i), values.dtype, row);
    rows[i].assign(row.begin(), row.end());
  }
  return rows;
}

void store_rows(const Rows& rows, const Matrix& to) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::vector<float> row(rows[i].begin(), rows[i].end());
    from_floats(row, to.row(i), to.dtype);
  }
}

double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void add_scaled(std::vector<double>& sum, const std::vector<double>& values, double factor) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += factor * values[i];
}

// The probabilities of one query over the keys up to its own place; the logarithm of their sum.
std::vector<double> weights_of(const std::vector<double>& query, const Rows& keys, std::size_t place,
                               double scale, double& log_sum) {
  std::vector<double> weights(place + 1);
  for (std::size_t i = 0; i <= place; ++i) weights[i] = scale * product(query, keys[i]);
  const double highest = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double weight : weights) sum += std::exp(weight - highest);
  log_sum = highest + std::log(sum);
  for (double& weight : weights) weight = std::exp(weight - log_sum);
  return weights;
}

}  // namespace

void attention_forward_reference(const AttentionShape& shape, const AttentionInputs& inputs,
                                 const Matrix& out, std::span<float> log_sums) {
  check_attention(shape, inputs, out, log_sums.size());
  for (std::size_t item = 0; item < shape.batch * shape.heads; ++item) {
    const std::size_t sequence = item / shape.heads;
    const std::size_t head = item % shape.heads;
    const Rows q = rows_of(shape, inputs.q, sequence, head);
    const Rows k = rows_of(shape, inputs.k, sequence, kv_head_of(shape, head));
    const Rows v = rows_of(shape, inputs.v, sequence, kv_head_of(shape, head));
    Rows result(shape.length, std::vector<double>(shape.width, 0.0));
    for (std::size_t place = 0; place < shape.length; ++place) {
      double log_sum = 0;
      const std::vector<double> weights = weights_of(q[place], k, place, shape.scale, log_sum);
      for (std::size_t i = 0; i <= place; ++i) add_scaled(result[place], v[i], weights[i]);
      log_sums[(sequence * shape.length + place) * shape.heads + head] = static_cast<float>(log_sum);
    }
    store_rows(result, head_of(shape, out, sequence, head));
  }
}

void attention_backward_reference(const AttentionShape& shape, const AttentionInputs& inputs,
                                  ConstMatrix out_gradient, const AttentionGradients& gradients) {
  const std::size_t group = shape.heads / shape.kv_heads;
  for (std::size_t item = 0; item < shape.batch * shape.kv_heads; ++item) {
    const std::size_t sequence = item / shape.kv_heads;
    const std::size_t kv_head = item % shape.kv_heads;
    const Rows k = rows_of(shape, inputs.k, sequence, kv_head);
    const Rows v = rows_of(shape, inputs.v, sequence, kv_head);
    Rows dk(shape.length, std::vector<double>(shape.width, 0.0));
    Rows dv = dk;
    for (std::size_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      const Rows q = rows_of(shape, inputs.q, sequence, head);
      const Rows dout = rows_of(shape, out_gradient, sequence, head);
      Rows dq(shape.length, std::vector<double>(shape.width, 0.0));
      for (std::size_t place = 0; place < shape.length; ++place) {
        double log_sum = 0;
        const std::vector<double> weights = weights_of(q[place], k, place, shape.scale, log_sum);
        double mean = 0;
        for (std::size_t i = 0; i <= place; ++i) mean += weights[i] * product(dout[place], v[i]);
        for (std::size_t i = 0; i <= place; ++i) {
          const double slope = shape.scale * weights[i] * (product(dout[place], v[i]) - mean);
          add_scaled(dv[i], dout[place], weights[i]);
          add_scaled(dk[i], q[place], slope);
          add_scaled(dq[place], k[i], slope);
        }
      }
      store_rows(dq, head_of(shape, gradients.q, sequence, head));
    }
    store_rows(dk, head_of(shape, gradients.k, sequence, kv_head));
    store_rows(dv, head_of(shape, gradients.v, sequence, kv_head));
  }
}

}  // namespace lockstep::kernels
