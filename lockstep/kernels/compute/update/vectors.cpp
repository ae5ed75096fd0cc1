// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/update/vectors.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/kernels/compute/update/blocks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/kernels/compute/update/vectors.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lockstep::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sums of doubles side by side: four vectors of the widest kind, so that as many additions are under way at
// any time. Narrower ones are more of them: every processor adds in the same order, and finds the same norm.
constexpr std::size_t kSums = 32;

// The four vectors, then the halves of what is left.
HWY_INLINE double sum_of_sums(double* sums) {
  constexpr std::size_t kWidest = kSums / 4;
  for (std::size_t i = 0; i < kWidest; ++i) {
    sums[i] = (sums[i] + sums[kWidest + i]) + (sums[2 * kWidest + i] + sums[3 * kWidest + i]);
  }
  for (std::size_t half = kWidest / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) sums[i] += sums[half + i];
  }
  return sums[0];
}

template <typename Term>
HWY_INLINE double summed(const float* values, std::size_t count, Term term) {
  constexpr hn::CappedTag<double, kSums / 4> d;
  constexpr hn::Rebind<float, decltype(d)> f;
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  constexpr std::size_t kVectors = kSums / kLanes;
  hn::Vec<decltype(d)> vectors[kVectors];
  for (auto& vector : vectors) vector = hn::Zero(d);
  std::size_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (std::size_t j = 0; j < kVectors; ++j) {
      vectors[j] = hn::Add(vectors[j], term(d, hn::PromoteTo(d, hn::LoadU(f, values + i + j * kLanes))));
    }
  }
  double sums[kSums];
  for (std::size_t j = 0; j < kVectors; ++j) hn::StoreU(vectors[j], d, sums + j * kLanes);
  double sum = sum_of_sums(sums);
  const hn::CappedTag<double, 1> one;
  for (; i < count; ++i) sum += hn::GetLane(term(one, hn::Set(one, double{values[i]})));
  return sum;
}

double squares_of_block(const float* values, std::size_t count) {
  return summed(values, count, [](auto, auto v) { return hn::Mul(v, v); });
}
double sum_of_block(const float* values, std::size_t count) {
  return summed(values, count, [](auto, auto v) { return v; });
}

void scale_block(float* values, std::size_t count, float factor) {
  const hn::ScalableTag<float> d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    hn::StoreU(hn::Mul(hn::LoadU(d, values + i), hn::Set(d, factor)), d, values + i);
  }
  for (; i < count; ++i) values[i] *= factor;
}

// `count` when all are finite.
std::size_t first_not_finite_of_block(const float* values, std::size_t count) {
  const hn::ScalableTag<float> d;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto place = hn::FindFirstTrue(d, hn::Not(hn::IsFinite(hn::LoadU(d, values + i))));
    if (place >= 0) return i + static_cast<std::size_t>(place);
  }
  while (i < count && std::isfinite(values[i])) ++i;
  return i;
}

}  // namespace lockstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::kernels {

HWY_EXPORT(squares_of_block);
HWY_EXPORT(sum_of_block);
HWY_EXPORT(scale_block);
HWY_EXPORT(first_not_finite_of_block);

namespace {

template <typename SumOfBlock>
double sum_over_blocks(std::span<const float> values, SumOfBlock sum_of_block) {
  std::vector<double> sums(block_count(values.size()));
  for_each_block(values.size(), [&](Block block) {
    sums[block.index] = sum_of_block(values.data() + block.first, block.count);
  });
  double total = 0;
  for (double sum : sums) total += sum;
  return total;
}

}  // namespace

void sums_of_squares(std::span<const float> values, std::span<double> sums) {
  LOCKSTEP_CHECK(sums.size() == (values.size() + kSquaresBlock - 1) / kSquaresBlock);
  parallel_for(sums.size(), [&](std::size_t index) {
    const std::size_t first = index * kSquaresBlock;
    sums[index] = HWY_DYNAMIC_DISPATCH(squares_of_block)(values.data() + first,
                                                         std::min(kSquaresBlock, values.size() - first));
  });
}

double sum_of(std::span<const float> values) {
  return sum_over_blocks(values, HWY_DYNAMIC_DISPATCH(sum_of_block));
}

void scale(std::span<float> values, float factor) {
  for_each_block(values.size(), [&](Block block) {
    HWY_DYNAMIC_DISPATCH(scale_block)(values.data() + block.first, block.count, factor);
  });
}

std::optional<std::size_t> first_not_finite(std::span<const float> values) {
  std::vector<std::size_t> places(block_count(values.size()), values.size());
  for_each_block(values.size(), [&](Block block) {
    const std::size_t place =
        HWY_DYNAMIC_DISPATCH(first_not_finite_of_block)(values.data() + block.first, block.count);
    if (place < block.count) places[block.index] = block.first + place;
  });
  const auto first = std::min_element(places.begin(), places.end());
  if (first == places.end() || *first == values.size()) return std::nullopt;
  return *first;
}

}  // namespace lockstep::kernels
#endif
