// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/activation/row.h"

#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/kernels/compute/activation/row.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lockstep/kernels/compute/math-inl.h"
#include "lockstep/kernels/compute/rows/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// (1 + tanh(u)) / 2 is sigmoid(2 u), so GELU is x sigmoid(a x + b x^3) with these.
constexpr float kGeluLinear = 1.5957691216F;  // 2 sqrt(2 / pi)
constexpr float kGeluCubic = 0.0713548163F;   // 0.044715 a

template <typename D, typename V = hn::Vec<D>>
HWY_INLINE V gelu_gate(D d, V x) {
  const V slope = hn::MulAdd(hn::Mul(x, x), hn::Set(d, kGeluCubic), hn::Set(d, kGeluLinear));
  return sigmoid_of(d, hn::Mul(x, slope));
}

void gelu_row(const float* in, float* out, std::size_t count) {
  each_vector(count, [&](auto d, std::size_t i) HWY_ATTR {
    const auto x = hn::LoadU(d, in + i);
    hn::StoreU(hn::Mul(x, gelu_gate(d, x)), d, out + i);
  });
}

// With s = sigmoid(z), z = a x + b x^3: s + x s (1 - s) z'.
void gelu_gradient_row(const float* in, const float* out_gradient, float* in_gradient, std::size_t count) {
  each_vector(count, [&](auto d, std::size_t i) HWY_ATTR {
    const auto x = hn::LoadU(d, in + i);
    const auto s = gelu_gate(d, x);
    const auto dz = hn::MulAdd(hn::Mul(x, x), hn::Set(d, 3 * kGeluCubic), hn::Set(d, kGeluLinear));
    const auto rest = hn::Mul(hn::Mul(x, dz), hn::NegMulAdd(s, s, s));
    hn::StoreU(hn::Mul(hn::LoadU(d, out_gradient + i), hn::Add(s, rest)), d, in_gradient + i);
  });
}

void swiglu_row(const float* gate, const float* up, float* out, std::size_t count) {
  each_vector(count, [&](auto d, std::size_t i) HWY_ATTR {
    const auto x = hn::LoadU(d, gate + i);
    hn::StoreU(hn::Mul(hn::Mul(x, sigmoid_of(d, x)), hn::LoadU(d, up + i)), d, out + i);
  });
}

// With s = sigmoid(x): the derivative of x s is s + x s (1 - s).
void swiglu_gradients_row(const SwigluRow& row, const float* out_gradient, float* gate_gradient,
                          float* up_gradient) {
  const float* gate = row.gate.data();
  const float* up = row.up.data();
  each_vector(row.gate.size(), [&](auto d, std::size_t i) HWY_ATTR {
    const auto x = hn::LoadU(d, gate + i);
    const auto dout = hn::LoadU(d, out_gradient + i);
    const auto s = sigmoid_of(d, x);
    const auto slope = hn::MulAdd(x, hn::NegMulAdd(s, s, s), s);
    const auto dgate = hn::Mul(hn::Mul(dout, hn::LoadU(d, up + i)), slope);
    hn::StoreU(hn::Mul(dout, hn::Mul(x, s)), d, up_gradient + i);
    hn::StoreU(dgate, d, gate_gradient + i);
  });
}

}  // namespace lockstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::kernels {

HWY_EXPORT(gelu_row);
HWY_EXPORT(gelu_gradient_row);
HWY_EXPORT(swiglu_row);
HWY_EXPORT(swiglu_gradients_row);

void gelu(std::span<const float> in, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(gelu_row)(in.data(), out.data(), in.size());
}
void gelu_gradient(std::span<const float> in, std::span<const float> out_gradient,
                   std::span<float> in_gradient) {
  HWY_DYNAMIC_DISPATCH(gelu_gradient_row)(in.data(), out_gradient.data(), in_gradient.data(), in.size());
}
void swiglu(const SwigluRow& row, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(swiglu_row)(row.gate.data(), row.up.data(), out.data(), out.size());
}
void swiglu_gradients(const SwigluRow& row, std::span<const float> out_gradient,
                      std::span<float> gate_gradient, std::span<float> up_gradient) {
  HWY_DYNAMIC_DISPATCH(swiglu_gradients_row)
  (row, out_gradient.data(), gate_gradient.data(), up_gradient.data());
}

}  // namespace lockstep::kernels
#endif
