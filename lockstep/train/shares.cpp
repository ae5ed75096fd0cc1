// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/shares.h"

#include <algorithm>

#include <ATen/ops/empty.h>

#include "lockstep/nn/tensor_view.h"

namespace lockstep::train {

at::Tensor gather_shares(const Partition& partition, const comm::Communicator& communicator,
                         const std::function<std::span<const float>(std::size_t bucket)>& own_of) {
  at::Tensor whole = at::empty({static_cast<std::int64_t>(partition.elements)}, at::kFloat);
  for (std::size_t bucket = 0; bucket < partition.buckets.size(); ++bucket) {
    const Range all = partition.buckets[bucket].elements;
    const std::span<float> values = nn::floats_of(whole).subspan(all.begin, all.size());
    std::ranges::copy(own_of(bucket),
                      values.begin() + static_cast<std::ptrdiff_t>(partition.own[bucket].begin - all.begin));
    if (partition.shards_update) communicator.all_gather(std::as_writable_bytes(values));
  }
  return whole;
}

}  // namespace lockstep::train
