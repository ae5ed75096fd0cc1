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

// Four sums of doubles side by side: as many additions are under way at any time.
constexpr std::size_t kSums = 4;

template <typename Term>
HWY_INLINE double summed(const float* values, std::size_t count, Term term) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> f;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<decltype(d)> sums[kSums] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  std::size_t i = 0;
  for (; i + kSums * lanes <= count; i += kSums * lanes) {
    for (std::size_t j = 0; j < kSums; ++j) {
      sums[j] = hn::Add(sums[j], term(d, hn::PromoteTo(d, hn::LoadU(f, values + i + j * lanes))));
    }
  }
  const auto total = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  double sum = hn::GetLane(hn::SumOfLanes(d, total));
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
