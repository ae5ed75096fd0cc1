// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/rows/sums.h"

#include <algorithm>

#include "lockstep/kernels/compute/rows/rows.h"
#include "lockstep/kernels/compute/threads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/kernels/compute/rows/sums.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lockstep/kernels/compute/rows/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void add_rows(const float* a, const float* b, float* sums, std::size_t count) {
  each_vector(count, [&](auto d, std::size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, sums + i);
  });
}

}  // namespace lockstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::kernels {
namespace {

// Few enough that the partial sums stay in the cache, enough that any machine's threads have work.
constexpr std::size_t kMostBlocks = 64;
constexpr std::size_t kLeastRows = 16;
constexpr std::size_t kColumnsTogether = 512;

constexpr std::size_t divided_up(std::size_t value, std::size_t by) {
  return (value + by - 1) / by;
}

}  // namespace

HWY_EXPORT(add_rows);

void add(std::span<const float> a, std::span<const float> b, std::span<float> sums) {
  HWY_DYNAMIC_DISPATCH(add_rows)(a.data(), b.data(), sums.data(), sums.size());
}

std::span<const float> sum_rows(std::size_t rows, std::size_t columns,
                                const std::function<void(std::size_t, std::span<float>)>& add_row) {
  const std::size_t block_rows = std::max(kLeastRows, divided_up(rows, kMostBlocks));
  const std::size_t blocks = std::max<std::size_t>(1, divided_up(rows, block_rows));
  const std::span<float> partials = RowBuffers::mine().floats(RowBuffers::partial_sums, blocks * columns);
  parallel_for(blocks, [&](std::size_t block) {
    const std::span<float> partial = partials.subspan(block * columns, columns);
    std::fill(partial.begin(), partial.end(), 0.0F);
    const std::size_t end = std::min(rows, (block + 1) * block_rows);
    for (std::size_t row = block * block_rows; row < end; ++row) add_row(row, partial);
  });
  parallel_for(divided_up(columns, kColumnsTogether), [&](std::size_t item) {
    const std::size_t first = item * kColumnsTogether;
    const std::size_t count = std::min(kColumnsTogether, columns - first);
    const std::span<float> sums = partials.subspan(first, count);
    for (std::size_t block = 1; block < blocks; ++block)
      add(sums, partials.subspan(block * columns + first, count), sums);
  });
  return partials.first(columns);
}

}  // namespace lockstep::kernels
#endif
