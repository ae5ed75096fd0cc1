// SPDX-License-Identifier: Apache-2.0
//
// How vectors of each dtype are read, combined and written, compiled once per target. A codec has
//   Value                  some elements, as wide as they are computed
//   elements()             how many
//   load(from)             exact
//   apply<Op>(a, b)        one combination; the value is not rounded yet
//   rounded(value)         the value as a load would see it after a store, except for the bits of a NaN
//   store(value, to)       rounds, and makes every NaN the same
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
    return exact ? hn::Mul(v, hn::Set(d, reciprocal)) : hn::Div(v, hn::Set(d, value));
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
  static HWY_INLINE void store(Value v, std::byte* to) {
    hn::StoreU(with_one_nan(D(), v), D(), reinterpret_cast<T*>(to));
  }
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

// For targets that lack what the faster codecs below need.
template <float (*widened)(std::uint16_t), std::uint16_t (*narrowed)(float)>
struct OneByOne {
  using D = hn::CappedTag<float, 1>;
  using Value = hn::Vec<D>;

  static HWY_INLINE std::size_t elements() { return 1; }
  static HWY_INLINE Value load(const std::byte* from) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, from, sizeof(bits));
    return hn::Set(D(), widened(bits));
  }
  template <typename Op>
  static HWY_INLINE Value apply(Value a, Value b) {
    return Op::apply(D(), a, b);
  }
  static HWY_INLINE Value rounded(Value v) { return hn::Set(D(), widened(narrowed(hn::GetLane(v)))); }
  static HWY_INLINE void store(Value v, std::byte* to) {
    const std::uint16_t bits = narrowed(hn::GetLane(v));
    std::memcpy(to, &bits, sizeof(bits));
  }
  static HWY_INLINE Value divided(Value v, const Divisor<float>& d) { return d.divided(D(), v); }
};

#if HWY_TARGET == HWY_SCALAR
using Bf16 = OneByOne<float_of_bf16, bf16_of_float>;
#else

// The elements at even places in the first vector, those at odd places in the second: no lane moves.
struct Bf16 : ComputedInFloats {
  static HWY_INLINE Value load(const std::byte* from) {
    return widened(hn::LoadU(Words(), reinterpret_cast<const std::uint32_t*>(from)));
  }
  static HWY_INLINE Value rounded(Value v) { return widened(narrowed(v)); }
  static HWY_INLINE void store(Value v, std::byte* to) {
    const hn::RebindToSigned<HalfWords> d;
    const auto both = hn::BitCast(d, narrowed(v));
    const auto is_nan = hn::Gt(hn::And(both, hn::Set(d, 0x7FFF)), hn::Set(d, 0x7F80));
    const auto value = hn::IfThenElse(is_nan, hn::Set(d, std::int16_t{kNanBf16}), both);
    hn::StoreU(value, d, reinterpret_cast<std::int16_t*>(to));
  }

 private:
  using HalfWords = hn::Repartition<std::uint16_t, Words>;

  static HWY_INLINE Value widened(WordVec both) {
    return {floats_of(hn::ShiftLeft<16>(both)), floats_of(hn::And(both, word(0xFFFF0000)))};
  }
  // To nearest, ties to even, for both places of each word at once: the upper half of a float plus what its
  // lower half carries, which is the top bit of (lower + 0x7FFF + odd) / 2. A NaN made from bf16 values has
  // nothing in its lower half that could carry.
  static HWY_INLINE WordVec narrowed(Value v) {
    const HalfWords half_words;
    const WordVec even = words_of(v.first);
    const WordVec odd = words_of(v.second);
    const WordVec upper = hn::OrAnd(hn::ShiftRight<16>(even), odd, word(0xFFFF0000));
    const WordVec lower = hn::OrAnd(hn::ShiftLeft<16>(odd), even, word(0x0000FFFF));
    const WordVec half = hn::OrAnd(word(0x7FFE7FFE), upper, word(0x00010001));
    const auto sum = hn::AverageRound(hn::BitCast(half_words, lower), hn::BitCast(half_words, half));
    return hn::BitCast(Words(), hn::Add(hn::BitCast(half_words, upper), hn::ShiftRight<15>(sum)));
  }
};

#endif

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
    const FloatVec first = with_one_nan(Floats(), v.first);
    const FloatVec second = with_one_nan(Floats(), v.second);
    hn::StoreU(hn::DemoteTo(Halves(), first), Halves(), halves);
    hn::StoreU(hn::DemoteTo(Halves(), second), Halves(), halves + hn::Lanes(Floats()));
  }
};

#else
using Fp16 = OneByOne<float_of_fp16, fp16_of_float>;
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
    Value value = 0;
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
