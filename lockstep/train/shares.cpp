// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/shares.h"

#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "lockstep/kernels/compute/update/vectors.h"
#include "lockstep/nn/tensor_view.h"

namespace lockstep::train {
namespace {

Bytes bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

// Bits that one stage has and all others have as zero are added as integers: the sum is exact, -0 included.
at::Tensor gather_stages(const Holding& holding, const at::Tensor& held) {
  const model::FlatLayout& layout = holding.layout;
  at::Tensor whole = at::zeros({static_cast<std::int64_t>(layout.elements_of_whole())}, held.options());
  for (const auto& [elements, in_whole] : layout.segments()) {
    const auto count = static_cast<std::int64_t>(elements.size());
    whole.narrow(0, static_cast<std::int64_t>(in_whole), count)
        .copy_(held.narrow(0, static_cast<std::int64_t>(elements.begin), count));
  }
  static_assert(kernels::kSquaresBlock % 2 == 0, "segments of two-byte elements are whole integers");
  holding.groups.pipeline.all_reduce(bytes_of(whole), {.dtype = DType::int32});
  return whole;
}

}  // namespace

at::Tensor gather_whole(const Holding& holding, DType dtype,
                        const std::function<ConstBytes(std::size_t bucket)>& own_of) {
  const Partition& partition = holding.partition;
  const std::size_t size = size_of(dtype);
  const at::Tensor held =
      at::empty({static_cast<std::int64_t>(partition.elements)}, nn::scalar_type_of(dtype));
  for (std::size_t bucket = 0; bucket < partition.buckets.size(); ++bucket) {
    const Range all = partition.buckets[bucket].elements;
    const Bytes values = bytes_of(held).subspan(all.begin * size, all.size() * size);
    const std::size_t begin = (partition.own[bucket].begin - all.begin) * size;
    std::ranges::copy(own_of(bucket), values.begin() + static_cast<std::ptrdiff_t>(begin));
    if (partition.shards_update) holding.groups.data.all_gather(values, {.dtype = dtype});
  }
  const bool is_whole = holding.groups.pipeline.size() == 1 && holding.chunks.size() == 1;
  return is_whole ? held.narrow(0, 0, holding.whole.elements()) : gather_stages(holding, held);
}

}  // namespace lockstep::train
