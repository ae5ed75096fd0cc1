// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/copy_mirror.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "lockstep/mesh/mirrors.h"

namespace lockstep::train {
namespace {

// Of the sharing group: sums of gradients have the first one, weights the second.
constexpr std::uint32_t kMirrorStream = 2;

void wait_all(std::vector<comm::Work> works) {
  for (comm::Work& work : works) work.wait();
}

}  // namespace

CopyMirror::CopyMirror(const Holding& holding, const Weights& weights)
    : holding_(holding), weights_(weights), group_(holding.groups.sharing) {
  const std::vector<Rank> mirrors = mirrors_by_rank(group_.hosts());
  partner_ = mirrors[static_cast<std::size_t>(group_.rank())];
  for (Rank owner = 0; owner < group_.size(); ++owner) {
    if (mirrors[static_cast<std::size_t>(owner)] != group_.rank()) continue;
    shares_.emplace_back(owner, holding, weights.quantities());
    gradients_.push_back(group_.allocate(shares_.back().size() * sizeof(float)));
  }
}

std::vector<comm::Work> CopyMirror::start_exchange(std::span<const float> own,
                                                   const PlaceOf& place_of) const {
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

void CopyMirror::fill() {
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

void CopyMirror::take_gradients(const std::vector<Gradients>& own) {
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

void CopyMirror::update(const OptimizerStep& how, float gradient_scale) {
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    const MirroredShare& share = shares_[i];
    for (std::size_t bucket = 0; bucket < share.shares().size(); ++bucket) {
      share.update(how, holding_.layout, bucket, 0, share.part_of(gradients_[i].as<float>(), bucket),
                   gradient_scale);
    }
  }
}

}  // namespace lockstep::train
