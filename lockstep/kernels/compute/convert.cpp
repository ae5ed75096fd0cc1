// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/convert.h"

#include <algorithm>
#include <cstdint>

#include "lockstep/base/error.h"
#include "lockstep/kernels/float16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/kernels/compute/convert.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lockstep::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::ScalableTag<std::uint32_t>;
using Shorts = hn::Rebind<std::uint16_t, Floats>;

void widen_bf16(const std::uint16_t* from, float* to, std::size_t count) {
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto words = hn::ShiftLeft<16>(hn::PromoteTo(Words(), hn::LoadU(Shorts(), from + i)));
    hn::StoreU(hn::BitCast(Floats(), words), Floats(), to + i);
  }
  for (; i < count; ++i) to[i] = float_of_bf16(from[i]);
}

void narrow_bf16(const float* from, std::uint16_t* to, std::size_t count) {
  const std::size_t lanes = hn::Lanes(Floats());
  const auto word = [](std::uint32_t value) { return hn::Set(Words(), value); };
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::LoadU(Floats(), from + i);
    const auto bits = hn::BitCast(Words(), value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), word(1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, word(0x7FFF))));
    const auto is_nan = hn::RebindMask(Words(), hn::IsNaN(value));
    hn::StoreU(hn::TruncateTo(Shorts(), hn::IfThenElse(is_nan, word(kNanBf16), rounded)), Shorts(), to + i);
  }
  for (; i < count; ++i) to[i] = bf16_of_float(from[i]);
}

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
using Halves = hn::Rebind<hwy::float16_t, Floats>;

void widen_fp16(const std::uint16_t* from, float* to, std::size_t count) {
  const std::size_t lanes = hn::Lanes(Floats());
  const auto* halves = reinterpret_cast<const hwy::float16_t*>(from);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::PromoteTo(Floats(), hn::LoadU(Halves(), halves + i)), Floats(), to + i);
  }
  for (; i < count; ++i) to[i] = float_of_fp16(from[i]);
}

void narrow_fp16(const float* from, std::uint16_t* to, std::size_t count) {
  const std::size_t lanes = hn::Lanes(Floats());
  auto* halves = reinterpret_cast<hwy::float16_t*>(to);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::LoadU(Floats(), from + i);
    const auto nan = hn::BitCast(Floats(), hn::Set(Words(), kNanFp32));
    hn::StoreU(hn::DemoteTo(Halves(), hn::IfThenElse(hn::IsNaN(value), nan, value)), Halves(), halves + i);
  }
  for (; i < count; ++i) to[i] = fp16_of_float(from[i]);
}
#else
void widen_fp16(const std::uint16_t* from, float* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = float_of_fp16(from[i]);
}

void narrow_fp16(const float* from, std::uint16_t* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = fp16_of_float(from[i]);
}
#endif

}  // namespace lockstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::kernels {

HWY_EXPORT(widen_bf16);
HWY_EXPORT(narrow_bf16);
HWY_EXPORT(widen_fp16);
HWY_EXPORT(narrow_fp16);

void to_floats(const std::byte* from, DType dtype, std::span<float> to) {
  const auto* shorts = reinterpret_cast<const std::uint16_t*>(from);
  if (dtype == DType::fp32) {
    std::copy_n(from, to.size_bytes(), std::as_writable_bytes(to).data());
  } else if (dtype == DType::bf16) {
    HWY_DYNAMIC_DISPATCH(widen_bf16)(shorts, to.data(), to.size());
  } else {
    LOCKSTEP_CHECK(dtype == DType::fp16);
    HWY_DYNAMIC_DISPATCH(widen_fp16)(shorts, to.data(), to.size());
  }
}

void from_floats(std::span<const float> from, std::byte* to, DType dtype) {
  auto* shorts = reinterpret_cast<std::uint16_t*>(to);
  if (dtype == DType::fp32) {
    std::ranges::copy(std::as_bytes(from), to);
  } else if (dtype == DType::bf16) {
    HWY_DYNAMIC_DISPATCH(narrow_bf16)(from.data(), shorts, from.size());
  } else {
    LOCKSTEP_CHECK(dtype == DType::fp16);
    HWY_DYNAMIC_DISPATCH(narrow_fp16)(from.data(), shorts, from.size());
  }
}

}  // namespace lockstep::kernels
#endif
