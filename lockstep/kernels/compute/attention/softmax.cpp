// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/attention/softmax.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/kernels/compute/attention/softmax.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lockstep/kernels/compute/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

RowSum exponentiate_row(float* scores, std::size_t count, float scale, float before) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  const auto scales = hn::Set(d, scale);
  auto most = hn::Set(d, before);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) most = hn::Max(most, hn::Mul(scales, hn::LoadU(d, scores + i)));
  float highest = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; i < count; ++i) highest = std::max(highest, scale * scores[i]);

  const auto shift = hn::Set(d, highest);
  auto sums = hn::Zero(d);
  for (i = 0; i + lanes <= count; i += lanes) {
    const auto value = exp_of(hn::MulSub(scales, hn::LoadU(d, scores + i), shift));
    hn::StoreU(value, d, scores + i);
    sums = hn::Add(sums, value);
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; i < count; ++i) {
    scores[i] = exp_of_one(std::fma(scale, scores[i], -highest));
    sum += scores[i];
  }
  return {highest, sum};
}

void probabilities_row(float* scores, std::size_t count, float scale, float log_sum) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto exponent = hn::MulSub(hn::Set(d, scale), hn::LoadU(d, scores + i), hn::Set(d, log_sum));
    hn::StoreU(exp_of(exponent), d, scores + i);
  }
  for (; i < count; ++i) scores[i] = exp_of_one(std::fma(scale, scores[i], -log_sum));
}

void through_softmax_row(const float* probabilities, float* gradients, std::size_t count, float mean,
                         float scale) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto p = hn::Mul(hn::LoadU(d, probabilities + i), hn::Set(d, scale));
    hn::StoreU(hn::Mul(p, hn::Sub(hn::LoadU(d, gradients + i), hn::Set(d, mean))), d, gradients + i);
  }
  for (; i < count; ++i) gradients[i] = probabilities[i] * scale * (gradients[i] - mean);
}

void multiply_row(float* values, std::size_t count, float factor) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, values + i), hn::Set(d, factor)), d, values + i);
  }
  for (; i < count; ++i) values[i] *= factor;
}

float dot_rows(const float* a, const float* b, std::size_t count) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  auto sums = hn::Zero(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) sums = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sums);
  float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; i < count; ++i) sum = std::fma(a[i], b[i], sum);
  return sum;
}

}  // namespace lockstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::kernels {

HWY_EXPORT(exponentiate_row);
HWY_EXPORT(probabilities_row);
HWY_EXPORT(through_softmax_row);
HWY_EXPORT(multiply_row);
HWY_EXPORT(dot_rows);

RowSum exponentiate(std::span<float> scores, float scale, float before) {
  return HWY_DYNAMIC_DISPATCH(exponentiate_row)(scores.data(), scores.size(), scale, before);
}
void probabilities(std::span<float> scores, float scale, float log_sum) {
  HWY_DYNAMIC_DISPATCH(probabilities_row)(scores.data(), scores.size(), scale, log_sum);
}
void through_softmax(std::span<const float> probabilities, std::span<float> gradients, float mean,
                     float scale) {
  HWY_DYNAMIC_DISPATCH(through_softmax_row)
  (probabilities.data(), gradients.data(), gradients.size(), mean, scale);
}
void multiply_by(std::span<float> values, float factor) {
  HWY_DYNAMIC_DISPATCH(multiply_row)(values.data(), values.size(), factor);
}
float dot(std::span<const float> a, std::span<const float> b) {
  return HWY_DYNAMIC_DISPATCH(dot_rows)(a.data(), b.data(), a.size());
}

}  // namespace lockstep::kernels
#endif
