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

// What is held of a bucket, into its places in the layout of the whole.
void place(const Holding& holding, Range bucket, const at::Tensor& values, const at::Tensor& whole) {
  for (const auto& [elements, in_whole] : holding.layout.segments()) {
    const Range both = intersection(bucket, elements);
    if (both.empty()) continue;
    const auto count = static_cast<std::int64_t>(both.size());
    whole.narrow(0, static_cast<std::int64_t>(in_whole + both.begin - elements.begin), count)
        .copy_(values.narrow(0, static_cast<std::int64_t>(both.begin - bucket.begin), count));
  }
}

}  // namespace

at::Tensor gather_whole(const Holding& holding, DType dtype,
                        const std::function<ConstBytes(std::size_t bucket)>& own_of, bool wanted) {
  const Partition& partition = holding.partition;
  const comm::Communicator& stages = holding.groups.pipeline;
  const at::ScalarType type = nn::scalar_type_of(dtype);
  at::Tensor whole;
  if (wanted || stages.size() > 1) {
    whole = at::zeros({static_cast<std::int64_t>(holding.layout.elements_of_whole())}, type);
  }
  at::Tensor memory = at::empty({0}, type);
  for (std::size_t bucket = 0; bucket < partition.buckets.size(); ++bucket) {
    const Range all = partition.buckets[bucket].elements;
    memory.resize_({static_cast<std::int64_t>(all.size())});
    const std::size_t begin = (partition.own[bucket].begin - all.begin) * size_of(dtype);
    std::ranges::copy(own_of(bucket), bytes_of(memory).begin() + static_cast<std::ptrdiff_t>(begin));
    if (partition.shards_update) holding.groups.sharing.all_gather(bytes_of(memory), {.dtype = dtype});
    if (whole.defined()) place(holding, all, memory, whole);
  }
  // Bits that one stage has and all others have as zero are added as integers: the sum is exact, -0 included.
  static_assert(kernels::kSquaresBlock % 2 == 0, "segments of two-byte elements are whole integers");
  if (stages.size() > 1) stages.all_reduce(bytes_of(whole), {.dtype = DType::int32});
  return wanted ? whole : at::Tensor();
}

}  // namespace lockstep::train
