// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/mirror.h"

#include <algorithm>

namespace lockstep::train {
namespace {

// Of the sharing group: sums of gradients have the first one, weights the second.
constexpr std::uint32_t kMirrorStream = 2;

bool all_apart(std::span<const int> hosts, std::size_t distance) {
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i] == hosts[(i + distance) % hosts.size()]) return false;
  }
  return true;
}

}  // namespace

int distance_to_mirror(std::span<const int> hosts) {
  for (std::size_t distance = 1; distance < hosts.size(); ++distance) {
    if (all_apart(hosts, distance)) return static_cast<int>(distance);
  }
  return 1;
}

bool Mirror::is_needed(const Holding& holding) {
  const Groups& groups = holding.groups;
  return holding.partition.shards_update && groups.sharing.size() > 1 && groups.copies.size() == 1;
}

Mirror::Mirror(const Holding& holding, const Weights& weights)
    : holding_(holding),
      weights_(weights),
      group_(holding.groups.sharing),
      distance_(distance_to_mirror(group_.hosts())),
      begins_{0} {
  for (const Bucket& bucket : holding.partition.buckets) {
    const Range share = chunk_range(bucket.elements.size(), static_cast<std::size_t>(group_.size()),
                                    static_cast<std::size_t>(ward()));
    shares_.push_back({bucket.elements.begin + share.begin, bucket.elements.begin + share.end});
    begins_.push_back(begins_.back() + share.size());
  }
  const auto quantities = static_cast<std::size_t>(weights.quantities());
  state_ = LargeMemory(quantities * begins_.back() * sizeof(float));
  gradients_ = group_.allocate(begins_.back() * sizeof(float));
}

std::span<float> Mirror::place_of(int quantity, std::size_t bucket) const {
  const std::size_t begin = static_cast<std::size_t>(quantity) * begins_.back() + begins_[bucket];
  return {reinterpret_cast<float*>(state_.bytes().data()) + begin, shares_[bucket].size()};
}

std::span<const float> Mirror::of(int quantity, std::size_t bucket) const {
  return place_of(quantity, bucket);
}

void Mirror::exchange(Bytes own, Bytes wards) const {
  comm::Work received = group_.recv_async(ward(), wards, {.stream = kMirrorStream});
  comm::Work sent = group_.send_async(partner(), own, {.stream = kMirrorStream});
  sent.wait();
  received.wait();
}

void Mirror::fill() {
  std::vector<float> own;
  for (std::size_t bucket = 0; bucket < shares_.size(); ++bucket) {
    const Range all = {0, holding_.partition.own[bucket].size()};
    own.resize(all.size());
    for (int quantity = 0; quantity < weights_.quantities(); ++quantity) {
      weights_.copy_quantity(quantity, bucket, all, own);
      exchange(std::as_writable_bytes(std::span(own)), std::as_writable_bytes(place_of(quantity, bucket)));
    }
  }
}

void Mirror::take_gradients(const std::vector<Gradients>& own) {
  std::vector<comm::Work> works;
  const std::span<float> all = gradients_.as<float>();
  for (std::size_t bucket = 0; bucket < shares_.size(); ++bucket) {
    const std::span<float> wards = all.subspan(begins_[bucket], shares_[bucket].size());
    works.push_back(group_.recv_async(ward(), std::as_writable_bytes(wards), {.stream = kMirrorStream}));
    // Sending only reads.
    const std::span<float> mine(const_cast<float*>(own[bucket].data()), own[bucket].size());
    works.push_back(group_.send_async(partner(), std::as_writable_bytes(mine), {.stream = kMirrorStream}));
  }
  for (comm::Work& work : works) work.wait();
}

void Mirror::update(const OptimizerStep& how, float gradient_scale) {
  for (std::size_t bucket = 0; bucket < shares_.size(); ++bucket) {
    ShareState state = {.master = place_of(0, bucket), .moments = {}};
    for (int quantity = 1; quantity < weights_.quantities(); ++quantity) {
      state.moments.push_back(place_of(quantity, bucket));
    }
    const Gradients gradients = gradients_.as<float>().subspan(begins_[bucket], shares_[bucket].size());
    update_share(how, holding_.layout, shares_[bucket], state, gradients, gradient_scale);
  }
}

}  // namespace lockstep::train
