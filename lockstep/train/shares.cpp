// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/shares.h"

#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "lockstep/kernels/compute/update/vectors.h"
#include "lockstep/nn/tensor_view.h"

namespace lockstep::train {

// Bits that one stage has and all others have as zero are added as integers: the sum is exact, -0 included.
at::Tensor gather_whole(const Holding& holding, const at::Tensor& values) {
  const model::FlatLayout& layout = holding.layout;
  if (holding.groups.pipeline.size() == 1) return values.narrow(0, 0, layout.elements());
  at::Tensor whole = at::zeros({static_cast<std::int64_t>(layout.elements_of_whole())}, values.options());
  for (const auto& [elements, in_whole] : layout.segments()) {
    const auto count = static_cast<std::int64_t>(elements.size());
    whole.narrow(0, static_cast<std::int64_t>(in_whole), count)
        .copy_(values.narrow(0, static_cast<std::int64_t>(elements.begin), count));
  }
  static_assert(kernels::kSquaresBlock % 2 == 0, "segments of two-byte elements are whole integers");
  holding.groups.pipeline.all_reduce({static_cast<std::byte*>(whole.data_ptr()), whole.nbytes()},
                                     {.dtype = DType::int32});
  return whole;
}

at::Tensor gather_whole(const Holding& holding,
                        const std::function<std::span<const float>(std::size_t bucket)>& own_of) {
  const Partition& partition = holding.partition;
  const at::Tensor held = at::empty({static_cast<std::int64_t>(partition.elements)}, at::kFloat);
  for (std::size_t bucket = 0; bucket < partition.buckets.size(); ++bucket) {
    const Range all = partition.buckets[bucket].elements;
    const std::span<float> values = nn::floats_of(held).subspan(all.begin, all.size());
    std::ranges::copy(own_of(bucket),
                      values.begin() + static_cast<std::ptrdiff_t>(partition.own[bucket].begin - all.begin));
    if (partition.shards_update) holding.groups.data.all_gather(std::as_writable_bytes(values));
  }
  return gather_whole(holding, held);
}

}  // namespace lockstep::train
