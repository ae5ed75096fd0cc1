// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/rotary/row.h"

#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/kernels/compute/rotary/row.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lockstep/kernels/compute/rows/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void rotate_halves(const float* in, const float* cosines, const float* sines, float direction, float* out,
                   std::size_t half) {
  each_vector(half, [&](auto d, std::size_t i) HWY_ATTR {
    const auto cosine = hn::LoadU(d, cosines + i);
    const auto sine = hn::Mul(hn::LoadU(d, sines + i), hn::Set(d, direction));
    const auto x = hn::LoadU(d, in + i);
    const auto y = hn::LoadU(d, in + half + i);
    hn::StoreU(hn::MulSub(x, cosine, hn::Mul(y, sine)), d, out + i);
    hn::StoreU(hn::MulAdd(y, cosine, hn::Mul(x, sine)), d, out + half + i);
  });
}

}  // namespace lockstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::kernels {

HWY_EXPORT(rotate_halves);

void rotate_head(std::span<const float> in, std::span<const float> cosines, std::span<const float> sines,
                 float direction, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(rotate_halves)
  (in.data(), cosines.data(), sines.data(), direction, out.data(), cosines.size());
}

}  // namespace lockstep::kernels
#endif
