// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/dropout/row.h"

#include <algorithm>
#include <cstddef>

#include "lockstep/base/philox.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/kernels/compute/dropout/row.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lockstep/kernels/compute/rows/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Without vectors there is no vector of products either: the caller computes everything.
#if HWY_TARGET == HWY_SCALAR
std::size_t philox_vectors(PhiloxKey, std::uint64_t, std::uint64_t, std::uint32_t*, std::size_t) {
  return 0;
}
#else
using Counters = hn::ScalableTag<std::uint32_t>;
using Wide = hn::Repartition<std::uint64_t, Counters>;
using Word = hn::Vec<Counters>;

// The upper and lower halves of 64-bit products.
struct Halves {
  Word high;
  Word low;
};
HWY_INLINE Halves multiplied(Word a, Word b) {
  const Counters d;
  const Wide wide;
  const auto even = hn::MulEven(a, b);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a))), b);
  return {.high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even))),
          .low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even))};
}

// The ten rounds of base/philox.h, a counter in each lane. Returns how many counters were used up.
std::size_t philox_vectors(PhiloxKey key, std::uint64_t stream, std::uint64_t first, std::uint32_t* numbers,
                           std::size_t counters) {
  const Counters d;
  const std::size_t lanes = hn::Lanes(d);
  const auto word = [&](std::uint64_t value)
                        HWY_ATTR { return hn::Set(d, static_cast<std::uint32_t>(value)); };
  std::size_t done = 0;
  for (; done + lanes <= counters; done += lanes) {
    const std::uint64_t counter = first + done;
    // A vector whose lower words pass 2^32 is left to the caller.
    if (static_cast<std::uint32_t>(counter) > 0xFFFFFFFF - lanes) return done;
    Word c0 = hn::Iota(d, static_cast<std::uint32_t>(counter));
    Word c1 = word(counter >> 32);
    Word c2 = word(stream);
    Word c3 = word(stream >> 32);
    Word k0 = word(key[0]);
    Word k1 = word(key[1]);
    for (int round = 0; round < 10; ++round) {
      const Halves p0 = multiplied(c0, word(0xD2511F53));
      const Halves p1 = multiplied(c2, word(0xCD9E8D57));
      c0 = hn::Xor(p1.high, hn::Xor(c1, k0));
      c1 = p1.low;
      c2 = hn::Xor(p0.high, hn::Xor(c3, k1));
      c3 = p0.low;
      k0 = hn::Add(k0, word(0x9E3779B9));
      k1 = hn::Add(k1, word(0xBB67AE85));
    }
    hn::StoreInterleaved4(c0, c1, c2, c3, d, numbers + 4 * done);
  }
  return done;
}
#endif

void keep_or_drop_row(const float* in, const std::uint32_t* numbers, std::uint32_t threshold, float scale,
                      float* out, std::size_t count) {
  each_vector(count, [&](auto d, std::size_t i) HWY_ATTR {
    const hn::RebindToUnsigned<decltype(d)> words;
    const auto dropped = hn::Lt(hn::LoadU(words, numbers + i), hn::Set(words, threshold));
    const auto kept = hn::Mul(hn::LoadU(d, in + i), hn::Set(d, scale));
    hn::StoreU(hn::IfThenZeroElse(hn::RebindMask(d, dropped), kept), d, out + i);
  });
}

}  // namespace lockstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::kernels {

HWY_EXPORT(philox_vectors);
HWY_EXPORT(keep_or_drop_row);

void random_numbers(std::uint64_t key, std::uint64_t stream, std::uint64_t counter,
                    std::span<std::uint32_t> numbers) {
  const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  const PhiloxKey words = {low(key), low(key >> 32)};
  const std::size_t counters = numbers.size() / 4;
  std::size_t done = HWY_DYNAMIC_DISPATCH(philox_vectors)(words, stream, counter, numbers.data(), counters);
  for (; done < counters; ++done) {
    const std::uint64_t next = counter + done;
    const PhiloxCounter value = philox({low(next), low(next >> 32), low(stream), low(stream >> 32)}, words);
    std::copy(value.begin(), value.end(), numbers.begin() + static_cast<std::ptrdiff_t>(4 * done));
  }
}

void keep_or_drop(std::span<const float> in, std::span<const std::uint32_t> numbers, std::uint32_t threshold,
                  float scale, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(keep_or_drop_row)
  (in.data(), numbers.data(), threshold, scale, out.data(), out.size());
}

}  // namespace lockstep::kernels
#endif
