// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/mirror.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/mesh/mirrors.h"

namespace lockstep::train {
namespace {

// Of the sharing group: sums of gradients have the first one, weights the second.
constexpr std::uint32_t kMirrorStream = 2;

void wait_all(std::vector<comm::Work> works) {
  for (comm::Work& work : works) work.wait();
}

}  // namespace

MirroredShare::MirroredShare(Rank owner, const Holding& holding, int quantities) : owner_(owner), begins_{0} {
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

bool Mirror::is_needed(const Holding& holding) {
  const Groups& groups = holding.groups;
  return holding.partition.shards_update && groups.sharing.size() > 1 && groups.copies.size() == 1;
}

Mirror::Mirror(const Holding& holding, const Weights& weights)
    : holding_(holding), weights_(weights), group_(holding.groups.sharing) {
  const std::vector<Rank> mirrors = mirrors_by_rank(group_.hosts());
  partner_ = mirrors[static_cast<std::size_t>(group_.rank())];
  for (Rank owner = 0; owner < group_.size(); ++owner) {
    if (mirrors[static_cast<std::size_t>(owner)] != group_.rank()) continue;
    shares_.emplace_back(owner, holding, weights.quantities());
    gradients_.push_back(group_.allocate(shares_.back().size() * sizeof(float)));
  }
}

std::vector<comm::Work> Mirror::start_exchange(std::span<const float> own, const PlaceOf& place_of) const {
  std::vector<comm::Work> works;
  for (std::size_t share = 0; share < shares_.size(); ++share) {
    works.push_back(group_.recv_async(shares_[share].owner(), std::as_writable_bytes(place_of(share)),
                                      {.stream = kMirrorStream}));
  }
  // Sending only reads.
  const std::span<float> sent(const_cast<float*>(own.data()), own.size());
  works.push_back(group_.send_async(partner_, std::as_writable_bytes(sent), {.stream = kMirrorStream}));
  return works;
}

void Mirror::fill() {
  std::vector<float> own;
  for (std::size_t bucket = 0; bucket < holding_.partition.buckets.size(); ++bucket) {
    const Range all = {0, holding_.partition.own[bucket].size()};
    own.resize(all.size());
    for (int quantity = 0; quantity < weights_.quantities(); ++quantity) {
      weights_.copy_quantity(quantity, bucket, all, own);
      wait_all(start_exchange(own, [&](std::size_t share) { return shares_[share].of(quantity, bucket); }));
    }
  }
}

void Mirror::take_gradients(const std::vector<Gradients>& own) {
  std::vector<comm::Work> works;
  for (std::size_t bucket = 0; bucket < own.size(); ++bucket) {
    std::ranges::move(start_exchange(own[bucket],
                                     [&](std::size_t share) {
                                       return shares_[share].part_of(gradients_[share].as<float>(), bucket);
                                     }),
                      std::back_inserter(works));
  }
  wait_all(std::move(works));
}

void Mirror::update(const OptimizerStep& how, float gradient_scale) {
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    const MirroredShare& share = shares_[i];
    for (std::size_t bucket = 0; bucket < share.shares().size(); ++bucket) {
      ShareState state = {.master = share.of(0, bucket), .moments = {}};
      for (int quantity = 1; quantity < weights_.quantities(); ++quantity) {
        state.moments.push_back(share.of(quantity, bucket));
      }
      update_share(how, holding_.layout, share.shares()[bucket], state,
                   share.part_of(gradients_[i].as<float>(), bucket), gradient_scale);
    }
  }
}

}  // namespace lockstep::train
