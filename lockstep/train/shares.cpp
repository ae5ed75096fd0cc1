// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/shares.h"

#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "lockstep/kernels/compute/update/vectors.h"
#include "lockstep/nn/tensor_view.h"
#include "lockstep/parallel/tensor/shards.h"

namespace lockstep::train {
namespace {

Bytes bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

// What is held of a bucket, into its places in the layout of the whole. Of lanes that have the same the first
// gives it.
void place(const Holding& holding, Range bucket, const at::Tensor& values, const at::Tensor& whole) {
  for (std::size_t i = 0; i < holding.layout.specs().size(); ++i) {
    const Range elements = elements_of(holding.layout.places()[i]);
    const Range both = intersection(bucket, elements);
    if (both.empty()) continue;
    const parallel::LaneShard shard = holding.shard(i);
    if (holding.tensor != nullptr && shard.sharing.first != holding.layout.lane_of(i)) continue;
    const auto in_whole = std::ranges::find(holding.whole.specs(), holding.layout.specs()[i].name,
                                            &model::ParameterSpec::name) -
                          holding.whole.specs().begin();
    const auto [first, count] = holding.whole.places()[static_cast<std::size_t>(in_whole)];
    parallel::put_part(shard, {both.begin - elements.begin, both.end - elements.begin},
                       values.narrow(0, static_cast<std::int64_t>(both.begin - bucket.begin),
                                     static_cast<std::int64_t>(both.size())),
                       whole.narrow(0, first, count));
  }
}

}  // namespace

at::Tensor gather_whole(const Holding& holding, DType dtype,
                        const std::function<ConstBytes(std::size_t bucket)>& own_of, bool wanted) {
  const Partition& partition = holding.partition;
  const Groups& groups = holding.groups;
  const bool is_divided = groups.pipeline.size() > 1 || groups.tensor.size() > 1;
  const at::ScalarType type = nn::scalar_type_of(dtype);
  at::Tensor whole;
  if (wanted || is_divided) {
    whole = at::zeros({holding.whole.elements()}, type);
  }
  at::Tensor memory = at::empty({0}, type);
  for (std::size_t bucket = 0; bucket < partition.buckets.size(); ++bucket) {
    const Range all = partition.buckets[bucket].elements;
    memory.resize_({static_cast<std::int64_t>(all.size())});
    const std::size_t begin = (partition.own[bucket].begin - all.begin) * size_of(dtype);
    std::ranges::copy(own_of(bucket), bytes_of(memory).begin() + static_cast<std::ptrdiff_t>(begin));
    if (partition.shards_update) groups.sharing.all_gather(bytes_of(memory), {.dtype = dtype});
    if (whole.defined()) place(holding, all, memory, whole);
  }
  // Bits that one rank has and all others have as zero are added as integers: the sum is exact, -0 included.
  static_assert(kernels::kSquaresBlock % 2 == 0, "segments of two-byte elements are whole integers");
  for (const comm::Communicator* group : {&groups.tensor, &groups.pipeline}) {
    if (group->size() > 1) group->all_reduce(bytes_of(whole), {.dtype = DType::int32});
  }
  return wanted ? whole : at::Tensor();
}

}  // namespace lockstep::train
