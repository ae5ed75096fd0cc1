// SPDX-License-Identifier: Apache-2.0
//
// A loop over floats, compiled once per target.
#if defined(LOCKSTEP_KERNELS_COMPUTE_ROWS_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_KERNELS_COMPUTE_ROWS_VECTORS_INL_H_
#undef LOCKSTEP_KERNELS_COMPUTE_ROWS_VECTORS_INL_H_
#else
#define LOCKSTEP_KERNELS_COMPUTE_ROWS_VECTORS_INL_H_
#endif

#include <cstddef>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lockstep::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// body(d, i) computes elements i up to i + Lanes(d). Each is computed alone, so that one body serves whole
// vectors and what remains.
template <typename Body>
HWY_INLINE void each_vector(std::size_t count, const Body& body) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) body(d, i);
  for (; i < count; ++i) body(one, i);
}

}  // namespace lockstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
