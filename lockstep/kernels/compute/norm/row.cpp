// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/norm/row.h"

#include <cstddef>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/kernels/compute/norm/row.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lockstep/kernels/compute/rows/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using NormFloats = hn::ScalableTag<float>;

// Four sums at a time, because an addition has to wait for the one before it. value(d, i) gives the terms.
template <typename Value>
HWY_INLINE float sum_of_row(std::size_t count, const Value& value) {
  const NormFloats d;
  const std::size_t lanes = hn::Lanes(d);
  auto sums0 = hn::Zero(d), sums1 = hn::Zero(d), sums2 = hn::Zero(d), sums3 = hn::Zero(d);
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    sums0 = hn::Add(sums0, value(d, i));
    sums1 = hn::Add(sums1, value(d, i + lanes));
    sums2 = hn::Add(sums2, value(d, i + 2 * lanes));
    sums3 = hn::Add(sums3, value(d, i + 3 * lanes));
  }
  for (; i + lanes <= count; i += lanes) sums0 = hn::Add(sums0, value(d, i));
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sums0, sums1), hn::Add(sums2, sums3))));
  const hn::CappedTag<float, 1> one;
  for (; i < count; ++i) sum += hn::GetLane(value(one, i));
  return sum;
}

float sum_row(const float* values, std::size_t count) {
  return sum_of_row(count, [&](auto d, std::size_t i) HWY_ATTR { return hn::LoadU(d, values + i); });
}

float sum_squares_row(const float* values, std::size_t count, float center) {
  return sum_of_row(count, [&](auto d, std::size_t i) HWY_ATTR {
    const auto distance = hn::Sub(hn::LoadU(d, values + i), hn::Set(d, center));
    return hn::Mul(distance, distance);
  });
}

void normalize_row(const float* in, float mean, float scale, const float* weight, const float* bias,
                   float* out, std::size_t count) {
  each_vector(count, [&](auto d, std::size_t i) HWY_ATTR {
    const auto n = hn::Mul(hn::Sub(hn::LoadU(d, in + i), hn::Set(d, mean)), hn::Set(d, scale));
    const auto shift = bias == nullptr ? hn::Zero(d) : hn::LoadU(d, bias + i);
    hn::StoreU(hn::MulAdd(n, hn::LoadU(d, weight + i), shift), d, out + i);
  });
}

NormMeans parameter_gradients_row(const NormRow& row, const float* weight, float* weight_gradient,
                                  float* bias_gradient) {
  const float* in = row.in.data();
  const float* out_gradient = row.out_gradient.data();
  const std::size_t count = row.in.size();
  const NormFloats all;
  auto sums_g = hn::Zero(all);
  auto sums_gn = hn::Zero(all);
  float sum_g = 0;
  float sum_gn = 0;
  each_vector(count, [&](auto d, std::size_t i) HWY_ATTR {
    const auto dout = hn::LoadU(d, out_gradient + i);
    const auto n = hn::Mul(hn::Sub(hn::LoadU(d, in + i), hn::Set(d, row.mean)), hn::Set(d, row.scale));
    const auto g = hn::Mul(dout, hn::LoadU(d, weight + i));
    hn::StoreU(hn::MulAdd(dout, n, hn::LoadU(d, weight_gradient + i)), d, weight_gradient + i);
    if (bias_gradient != nullptr)
      hn::StoreU(hn::Add(dout, hn::LoadU(d, bias_gradient + i)), d, bias_gradient + i);
    if constexpr (std::is_same_v<decltype(d), NormFloats>) {
      sums_g = hn::Add(sums_g, g);
      sums_gn = hn::MulAdd(g, n, sums_gn);
    } else {
      sum_g += hn::GetLane(g);
      sum_gn += hn::GetLane(hn::Mul(g, n));
    }
  });
  sum_g += hn::GetLane(hn::SumOfLanes(all, sums_g));
  sum_gn += hn::GetLane(hn::SumOfLanes(all, sums_gn));
  return {sum_g / static_cast<float>(count), sum_gn / static_cast<float>(count)};
}

void input_gradient_row(const NormRow& row, const float* weight, NormMeans means, const float* before,
                        float* in_gradient) {
  const float* in = row.in.data();
  const float* out_gradient = row.out_gradient.data();
  each_vector(row.in.size(), [&](auto d, std::size_t i) HWY_ATTR {
    const auto n = hn::Mul(hn::Sub(hn::LoadU(d, in + i), hn::Set(d, row.mean)), hn::Set(d, row.scale));
    const auto g =
        hn::MulSub(hn::LoadU(d, out_gradient + i), hn::LoadU(d, weight + i), hn::Set(d, means.of_g));
    const auto centered = hn::NegMulAdd(n, hn::Set(d, means.of_gn), g);
    const auto was = before == nullptr ? hn::Zero(d) : hn::LoadU(d, before + i);
    hn::StoreU(hn::MulAdd(centered, hn::Set(d, row.scale), was), d, in_gradient + i);
  });
}

}  // namespace lockstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::kernels {

HWY_EXPORT(sum_row);
HWY_EXPORT(sum_squares_row);
HWY_EXPORT(normalize_row);
HWY_EXPORT(parameter_gradients_row);
HWY_EXPORT(input_gradient_row);

float mean_of(std::span<const float> values) {
  return HWY_DYNAMIC_DISPATCH(sum_row)(values.data(), values.size()) / static_cast<float>(values.size());
}
float spread_of(std::span<const float> values, float center) {
  return HWY_DYNAMIC_DISPATCH(sum_squares_row)(values.data(), values.size(), center) /
         static_cast<float>(values.size());
}
void normalize(std::span<const float> in, float mean, float scale, std::span<const float> weight,
               std::span<const float> bias, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(normalize_row)
  (in.data(), mean, scale, weight.data(), bias.data(), out.data(), out.size());
}
NormMeans add_parameter_gradients(const NormRow& row, std::span<const float> weight,
                                  std::span<float> weight_gradient, std::span<float> bias_gradient) {
  return HWY_DYNAMIC_DISPATCH(parameter_gradients_row)(
      row, weight.data(), weight_gradient.data(), bias_gradient.empty() ? nullptr : bias_gradient.data());
}
void input_gradient(const NormRow& row, std::span<const float> weight, NormMeans means,
                    std::span<const float> before, std::span<float> in_gradient) {
  HWY_DYNAMIC_DISPATCH(input_gradient_row)
  (row, weight.data(), means, before.data(), in_gradient.data());
}

}  // namespace lockstep::kernels
#endif
