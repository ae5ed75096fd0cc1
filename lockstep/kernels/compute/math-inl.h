// SPDX-License-Identifier: Apache-2.0
//
// Elementary functions on vectors of floats, compiled once per target. The scalar forms give the bits of the
// vector forms, so that where a row ends does not show.
#if defined(LOCKSTEP_KERNELS_COMPUTE_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_KERNELS_COMPUTE_MATH_INL_H_
#undef LOCKSTEP_KERNELS_COMPUTE_MATH_INL_H_
#else
#define LOCKSTEP_KERNELS_COMPUTE_MATH_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lockstep::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;

// e^x with a relative error below 2e-7: x = n ln 2 + r with |r| <= ln 2 / 2, a polynomial of r, and n in the
// exponent. Below -87 it is 0, above 88 it is infinite, and a NaN stays one.
template <typename D, typename V = hn::Vec<D>>
HWY_INLINE V exp_of(D d, V x) {
  const hn::RebindToSigned<D> ints;
  const V bounded = hn::Min(hn::Max(x, hn::Set(d, -87.0F)), hn::Set(d, 88.0F));
  const V n = hn::Round(hn::Mul(bounded, hn::Set(d, 1.44269504F)));
  // ln 2 in two parts, the first with few enough bits that n times it is exact.
  const V high = hn::NegMulAdd(n, hn::Set(d, 0.693359375F), bounded);
  const V r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), high);
  V p = hn::Set(d, 1.9875691500e-4F);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3981999507e-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3F));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1F));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1F));
  p = hn::Add(hn::MulAdd(hn::Mul(p, r), r, r), hn::Set(d, 1.0F));
  const auto exponent = hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(ints, n), hn::Set(ints, 127)));
  const V value = hn::Mul(p, hn::BitCast(d, exponent));
  const V low = hn::IfThenElse(hn::Lt(x, hn::Set(d, -87.0F)), hn::Zero(d), value);
  const V all = hn::IfThenElse(hn::Gt(x, hn::Set(d, 88.0F)), hn::Inf(d), low);
  return hn::IfThenElse(hn::IsNaN(x), x, all);
}
HWY_INLINE hn::Vec<Floats> exp_of(hn::Vec<Floats> x) {
  return exp_of(Floats(), x);
}
HWY_INLINE float exp_of_one(float x) {
  const hn::CappedTag<float, 1> d;
  return hn::GetLane(exp_of(d, hn::Set(d, x)));
}

// 1 / (1 + e^(-x)).
template <typename D, typename V = hn::Vec<D>>
HWY_INLINE V sigmoid_of(D d, V x) {
  return hn::Div(hn::Set(d, 1.0F), hn::Add(hn::Set(d, 1.0F), exp_of(d, hn::Neg(x))));
}

}  // namespace lockstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
