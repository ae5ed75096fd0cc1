// SPDX-License-Identifier: Apache-2.0
//
// How vectors of each dtype are read, combined and written, compiled once per target. A codec has
//   Value                  some elements, as wide as they are computed
//   elements()             how many
//   load(from)             exact
//   apply<Op>(a, b)        one combination; the value is not rounded yet
//   rounded(value)         the value as a later load would see it
//   store(value, to)       rounds
//   divided(value, d)      floats only; not rounded yet
#if defined(LOCKSTEP_KERNELS_FOLD_CODECS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_KERNELS_FOLD_CODECS_INL_H_
#undef LOCKSTEP_KERNELS_FOLD_CODECS_INL_H_
#else
#define LOCKSTEP_KERNELS_FOLD_CODECS_INL_H_
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hwy/highway.h>

#include "lockstep/kernels/fold_ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Divides by a whole number; a power of two is multiplied by its reciprocal, which has the same bits.
template <typename T>
struct Divisor {
  explicit Divisor(std::size_t divide_by)
      : value(static_cast<T>(divide_by)), reciprocal(T{1} / value), exact(std::has_single_bit(divide_by)) {}

  template <typename D, typename V>
  HWY_INLINE V divided(D d, V v) const {
    return with_one_nan(d, exact ? hn::Mul(v, hn::Set(d, reciprocal)) : hn::Div(v, hn::Set(d, value)));
  }

  T value;
  T reciprocal;
  bool exact;
};

// fp32, fp64 and integers: computed as they are stored.
template <typename T>
struct Native {
  using D = hn::ScalableTag<T>;
  using Value = hn::Vec<D>;

  static HWY_INLINE std::size_t elements() { return hn::Lanes(D()); }
  static HWY_INLINE Value load(const std::byte* from) {
    return hn::LoadU(D(), reinterpret_cast<const T*>(from));
  }
  template <typename Op>
  static HWY_INLINE Value apply(Value a, Value b) {
    return Op::apply(D(), a, b);
  }
  static HWY_INLINE Value rounded(Value v) { return v; }
  static HWY_INLINE void store(Value v, std::byte* to) { hn::StoreU(v, D(), reinterpret_cast<T*>(to)); }
  static HWY_INLINE Value divided(Value v, const Divisor<T>& d) { return d.divided(D(), v); }
};

using Floats = hn::ScalableTag<float>;
using Words = hn::ScalableTag<std::uint32_t>;
using FloatVec = hn::Vec<Floats>;
using WordVec = hn::Vec<Words>;

HWY_INLINE WordVec word(std::uint32_t value) {
  return hn::Set(Words(), value);
}
HWY_INLINE WordVec words_of(FloatVec v) {
  return hn::BitCast(Words(), v);
}
HWY_INLINE FloatVec floats_of(WordVec v) {
  return hn::BitCast(Floats(), v);
}

// Two vectors of floats, the shape in which both 16-bit types are computed.
struct FloatPair {
  FloatVec first;
  FloatVec second;
};

struct ComputedInFloats {
  using Value = FloatPair;

  static HWY_INLINE std::size_t elements() { return 2 * hn::Lanes(Floats()); }
  template <typename Op>
  static HWY_INLINE Value apply(Value a, Value b) {
    return {Op::apply(Floats(), a.first, b.first), Op::apply(Floats(), a.second, b.second)};
  }
  static HWY_INLINE Value divided(Value v, const Divisor<float>& d) {
    return {d.divided(Floats(), v.first), d.divided(Floats(), v.second)};
  }
};

// The elements at even places in the first vector, those at odd places in the second: no lane moves.
struct Bf16 : ComputedInFloats {
  static HWY_INLINE Value load(const std::byte* from) {
    const WordVec both = hn::LoadU(Words(), reinterpret_cast<const std::uint32_t*>(from));
    return {floats_of(hn::ShiftLeft<16>(both)), floats_of(hn::And(both, word(0xFFFF0000)))};
  }
  static HWY_INLINE Value rounded(Value v) {
    return {floats_of(hn::And(nearest(v.first), word(0xFFFF0000))),
            floats_of(hn::And(nearest(v.second), word(0xFFFF0000)))};
  }
  static HWY_INLINE void store(Value v, std::byte* to) {
    const WordVec both =
        hn::Or(hn::And(nearest(v.second), word(0xFFFF0000)), hn::ShiftRight<16>(nearest(v.first)));
    hn::StoreU(both, Words(), reinterpret_cast<std::uint32_t*>(to));
  }

 private:
  // The upper 16 bits are the bf16 nearest to v, ties to even; infinity and the quiet NaN stay.
  static HWY_INLINE WordVec nearest(FloatVec v) {
    const WordVec bits = words_of(v);
    const WordVec tie_to_even = hn::And(hn::ShiftRight<16>(bits), word(1));
    return hn::Add(hn::Add(bits, word(0x7FFF)), tie_to_even);
  }
};

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL

// The processor converts, exactly as float16.h does.
struct Fp16 : ComputedInFloats {
  using Halves = hn::Rebind<hwy::float16_t, Floats>;

  static HWY_INLINE Value load(const std::byte* from) {
    const auto* halves = reinterpret_cast<const hwy::float16_t*>(from);
    return {hn::PromoteTo(Floats(), hn::LoadU(Halves(), halves)),
            hn::PromoteTo(Floats(), hn::LoadU(Halves(), halves + hn::Lanes(Floats())))};
  }
  static HWY_INLINE Value rounded(Value v) {
    return {hn::PromoteTo(Floats(), hn::DemoteTo(Halves(), v.first)),
            hn::PromoteTo(Floats(), hn::DemoteTo(Halves(), v.second))};
  }
  static HWY_INLINE void store(Value v, std::byte* to) {
    auto* halves = reinterpret_cast<hwy::float16_t*>(to);
    hn::StoreU(hn::DemoteTo(Halves(), v.first), Halves(), halves);
    hn::StoreU(hn::DemoteTo(Halves(), v.second), Halves(), halves + hn::Lanes(Floats()));
  }
};

#else

// By integer arithmetic; even places in the first vector, odd places in the second.
struct Fp16 : ComputedInFloats {
  static HWY_INLINE Value load(const std::byte* from) {
    const WordVec both = hn::LoadU(Words(), reinterpret_cast<const std::uint32_t*>(from));
    return {widened(hn::And(both, word(0xFFFF))), widened(hn::ShiftRight<16>(both))};
  }
  static HWY_INLINE Value rounded(Value v) {
    return {widened(narrowed(v.first)), widened(narrowed(v.second))};
  }
  static HWY_INLINE void store(Value v, std::byte* to) {
    const WordVec both = hn::Or(narrowed(v.first), hn::ShiftLeft<16>(narrowed(v.second)));
    hn::StoreU(both, Words(), reinterpret_cast<std::uint32_t*>(to));
  }

 private:
  // Read as a float the exponent is 112 too small, in denormals too; infinity and NaN need all its bits.
  static HWY_INLINE FloatVec widened(WordVec half) {
    const WordVec magnitude = hn::ShiftLeft<13>(hn::And(half, word(0x7FFF)));
    const FloatVec scaled = hn::Mul(floats_of(magnitude), hn::Set(Floats(), 0x1p112F));
    const auto special = hn::Gt(hn::BitCast(Ints(), magnitude), hn::Set(Ints(), 0x0F7FFFFF));
    const WordVec exponent = hn::IfThenElseZero(hn::RebindMask(Words(), special), word(0x7F800000));
    const WordVec sign = hn::ShiftLeft<16>(hn::And(half, word(0x8000)));
    return floats_of(hn::Or(hn::Or(words_of(scaled), exponent), sign));
  }
  static HWY_INLINE WordVec narrowed(FloatVec v) {
    const WordVec bits = words_of(v);
    const WordVec magnitude = hn::And(bits, word(0x7FFFFFFF));
    const WordVec tie_to_even = hn::And(hn::ShiftRight<13>(magnitude), word(1));
    const WordVec nearest = hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, word(0xFFF)), tie_to_even));
    const WordVec normal = hn::Min(hn::Sub(nearest, word(112 << 10)), word(0x7C00));
    // In 0.5 the last bit counts 2^-24, the unit of denormal fp16: the adder rounds.
    const WordVec denormal =
        hn::Sub(words_of(hn::Add(floats_of(magnitude), hn::Set(Floats(), 0.5F))), word(0x3F000000));
    const auto small = hn::Lt(hn::BitCast(Ints(), magnitude), hn::Set(Ints(), 0x38800000));
    const WordVec number = hn::IfThenElse(hn::RebindMask(Words(), small), denormal, normal);
    const WordVec value = hn::IfThenElse(hn::RebindMask(Words(), hn::IsNaN(v)), word(kNanFp16), number);
    return hn::Or(value, hn::And(hn::ShiftRight<16>(bits), word(0x8000)));
  }

  using Ints = hn::ScalableTag<std::int32_t>;
};

#endif

// Products of bytes, which processors lack: even places in the low byte of the first vector's lanes (what the
// upper byte holds does not reach a product's low byte), odd places in the second.
struct ByteProduct {
  using D = hn::ScalableTag<std::uint16_t>;
  struct Value {
    hn::Vec<D> even;
    hn::Vec<D> odd;
  };

  static HWY_INLINE std::size_t elements() { return 2 * hn::Lanes(D()); }
  static HWY_INLINE Value load(const std::byte* from) {
    const auto both = hn::LoadU(D(), reinterpret_cast<const std::uint16_t*>(from));
    return {both, hn::ShiftRight<8>(both)};
  }
  template <typename Op>
  static HWY_INLINE Value apply(Value a, Value b) {
    return {Op::apply(D(), a.even, b.even), Op::apply(D(), a.odd, b.odd)};
  }
  static HWY_INLINE Value rounded(Value v) { return v; }
  static HWY_INLINE void store(Value v, std::byte* to) {
    const auto both = hn::Or(hn::And(v.even, hn::Set(D(), std::uint16_t{0xFF})), hn::ShiftLeft<8>(v.odd));
    hn::StoreU(both, D(), reinterpret_cast<std::uint16_t*>(to));
  }
};

// Few processors multiply 64-bit vectors, and nobody waits for it.
struct LongProduct {
  using Value = std::uint64_t;

  static HWY_INLINE std::size_t elements() { return 1; }
  static HWY_INLINE Value load(const std::byte* from) {
    Value value;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  template <typename Op>
  static HWY_INLINE Value apply(Value a, Value b) {
    return a * b;
  }
  static HWY_INLINE Value rounded(Value v) { return v; }
  static HWY_INLINE void store(Value v, std::byte* to) { std::memcpy(to, &v, sizeof(v)); }
};

}  // namespace lockstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
