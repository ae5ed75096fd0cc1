// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/mirrored_share.h"

#include "lockstep/mesh/range.h"

namespace lockstep::train {

MirroredShare::MirroredShare(Rank owner, const Holding& holding, int quantities)
    : owner_(owner), quantities_(quantities), begins_{0} {
  const auto ranks = static_cast<std::size_t>(holding.groups.sharing.size());
  for (const Bucket& bucket : holding.partition.buckets) {
    const Range share = chunk_range(bucket.elements.size(), ranks, static_cast<std::size_t>(owner));
    shares_.push_back({bucket.elements.begin + share.begin, bucket.elements.begin + share.end});
    begins_.push_back(begins_.back() + share.size());
  }
  state_ = LargeMemory(static_cast<std::size_t>(quantities) * size() * sizeof(float));
}

std::span<float> MirroredShare::of(int quantity, std::size_t bucket) const {
  float* all = reinterpret_cast<float*>(state_.bytes().data()) + static_cast<std::size_t>(quantity) * size();
  return part_of({all, size()}, bucket);
}

void MirroredShare::update(const OptimizerStep& how, const model::FlatLayout& layout, std::size_t bucket,
                           std::size_t first, std::span<const float> gradients, float gradient_scale) const {
  ShareState state = {.master = of(0, bucket).subspan(first), .moments = {}};
  for (int quantity = 1; quantity < quantities_; ++quantity) {
    state.moments.push_back(of(quantity, bucket).subspan(first));
  }
  const Range& share = shares_[bucket];
  update_share(how, layout, {share.begin + first, share.end}, state, gradients.subspan(first),
               gradient_scale);
}

}  // namespace lockstep::train
