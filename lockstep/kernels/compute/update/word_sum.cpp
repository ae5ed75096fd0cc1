// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/update/word_sum.h"

#include <cstddef>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/kernels/compute/update/word_sum.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lockstep::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Two sums side by side, so that loads do not wait for additions. Only vectors are loaded from any address.
std::uint64_t sum_of_words(const std::byte* memory, std::size_t words) {
  const hn::ScalableTag<std::uint64_t> d;
  const auto load = [&](std::size_t word) {
    return hn::LoadU(d, reinterpret_cast<const std::uint64_t*>(memory + word * 8));
  };
  auto even = hn::Zero(d);
  auto odd = hn::Zero(d);
  std::size_t word = 0;
  for (; hn::Lanes(d) > 1 && word + 2 * hn::Lanes(d) <= words; word += 2 * hn::Lanes(d)) {
    even = hn::Add(even, load(word));
    odd = hn::Add(odd, load(word + hn::Lanes(d)));
  }
  std::uint64_t sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
  for (; word < words; ++word) {
    std::uint64_t one = 0;
    std::memcpy(&one, memory + word * 8, sizeof(one));
    sum += one;
  }
  return sum;
}

}  // namespace lockstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::kernels {

HWY_EXPORT(sum_of_words);

std::uint64_t word_sum(ConstBytes memory) {
  const std::size_t words = memory.size() / sizeof(std::uint64_t);
  const ConstBytes rest = memory.subspan(words * sizeof(std::uint64_t));
  std::uint64_t last = 0;
  if (!rest.empty()) std::memcpy(&last, rest.data(), rest.size());
  return HWY_DYNAMIC_DISPATCH(sum_of_words)(memory.data(), words) + last;
}

std::uint64_t word_sum_reference(ConstBytes memory) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    sum += std::to_integer<std::uint64_t>(memory[i]) << (8 * (i % sizeof(std::uint64_t)));
  }
  return sum;
}

}  // namespace lockstep::kernels
#endif
