// SPDX-License-Identifier: Apache-2.0
//
// One combination of two vectors, compiled once per target. Which NaN it gives is left to the processor;
// with_one_nan() makes it the quiet NaN of float16.h where a value is stored.
#if defined(LOCKSTEP_KERNELS_FOLD_OPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_KERNELS_FOLD_OPS_INL_H_
#undef LOCKSTEP_KERNELS_FOLD_OPS_INL_H_
#else
#define LOCKSTEP_KERNELS_FOLD_OPS_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include <hwy/highway.h>

#include "lockstep/kernels/float16.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename D>
HWY_INLINE hn::Vec<D> quiet_nan(D d) {
  const hn::RebindToUnsigned<D> bits;
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return hn::BitCast(d, hn::Set(bits, kNanFp32));
  } else {
    return hn::BitCast(d, hn::Set(bits, kNanFp64));
  }
}

template <typename D, typename V>
HWY_INLINE V with_one_nan(D d, V value) {
  if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
    return hn::IfThenElse(hn::IsNaN(value), quiet_nan(d), value);
  } else {
    return value;
  }
}

template <typename D, typename V>
HWY_INLINE V nan_if_either(D d, V a, V b, V value) {
  return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), quiet_nan(d), value);
}

struct Sum {
  template <typename D, typename V>
  static HWY_INLINE V apply(D /*d*/, V a, V b) {
    return hn::Add(a, b);
  }
};

struct Product {
  template <typename D, typename V>
  static HWY_INLINE V apply(D /*d*/, V a, V b) {
    return hn::Mul(a, b);
  }
};

// Equal floats differ at most in the sign of zero: joining their bits makes -0 the lesser, meeting them +0
// the greater.
struct Min {
  template <typename D, typename V>
  static HWY_INLINE V apply(D d, V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return nan_if_either(d, a, b, hn::IfThenElse(hn::Eq(a, b), hn::Or(a, b), hn::Min(a, b)));
    } else {
      return hn::Min(a, b);
    }
  }
};

struct Max {
  template <typename D, typename V>
  static HWY_INLINE V apply(D d, V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return nan_if_either(d, a, b, hn::IfThenElse(hn::Eq(a, b), hn::And(a, b), hn::Max(a, b)));
    } else {
      return hn::Max(a, b);
    }
  }
};

}  // namespace lockstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
