// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/mirror.h"

#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/mesh/mirrors.h"

namespace lockstep::train {
namespace {

// Of the sharing group: sums of gradients have the first one, weights the second.
constexpr std::uint32_t kMirrorStream = 2;

}  // namespace

MirroredShare::MirroredShare(Rank owner, const Holding& holding, int quantities, std::size_t steps)
    : owner_(owner), begins_{0}, quantities_(quantities) {
  const auto ranks = static_cast<std::size_t>(holding.groups.sharing.size());
  for (const Bucket& bucket : holding.partition.buckets) {
    const Range share = chunk_range(bucket.elements.size(), ranks, static_cast<std::size_t>(owner));
    shares_.push_back({bucket.elements.begin + share.begin, bucket.elements.begin + share.end});
    begins_.push_back(begins_.back() + share.size());
  }
  state_ = LargeMemory(static_cast<std::size_t>(quantities) * size() * sizeof(float));
  gradients_ = LargeMemory(steps * size() * sizeof(float));
}

std::span<float> MirroredShare::part(const LargeMemory& of_all, std::size_t index, Range elements) const {
  float* all = reinterpret_cast<float*>(of_all.bytes().data()) + index * size();
  return {all + elements.begin, elements.size()};
}

void MirroredShare::apply(std::span<const Step> steps, const model::FlatLayout& layout,
                          Range elements) const {
  for (std::size_t bucket = 0; bucket < shares_.size(); ++bucket) {
    const Range both = intersection(elements, of_bucket(bucket));
    if (both.empty()) continue;
    ShareState state = {.master = part(state_, 0, both), .moments = {}};
    for (int quantity = 1; quantity < quantities_; ++quantity) {
      state.moments.push_back(part(state_, static_cast<std::size_t>(quantity), both));
    }
    std::vector<ShareStep> of_part;
    for (const Step& step : steps) {
      of_part.push_back({.how = step.how,
                         .gradients = part(gradients_, step.place, both),
                         .gradient_scale = step.gradient_scale});
    }
    const std::size_t begin = shares_[bucket].begin + both.begin - begins_[bucket];
    update_share(of_part, layout, {begin, begin + both.size()}, state);
  }
}

bool Mirror::is_needed(const Holding& holding) {
  const Groups& groups = holding.groups;
  return holding.partition.shards_update && groups.sharing.size() > 1 && groups.copies.size() == 1;
}

Mirror::Mirror(const Holding& holding, const Weights& weights, std::int64_t steps)
    : holding_(holding),
      weights_(weights),
      group_(holding.groups.sharing),
      kept_(static_cast<std::size_t>(steps)),
      applied_(kept_.size(), 0) {
  const std::vector<Rank> mirrors = mirrors_by_rank(group_.hosts());
  partner_ = mirrors[static_cast<std::size_t>(group_.rank())];
  for (Rank owner = 0; owner < group_.size(); ++owner) {
    if (mirrors[static_cast<std::size_t>(owner)] != group_.rank()) continue;
    shares_.emplace_back(owner, holding, weights.quantities(), kept_.size());
  }
}

Mirror::~Mirror() {
  for (comm::Work& work : works_) work.cancel();
}

void Mirror::start_exchange(std::span<const float> own, const PlaceOf& place_of) {
  for (const MirroredShare& share : shares_) {
    works_.push_back(
        group_.recv_async(share.owner(), std::as_writable_bytes(place_of(share)), {.stream = kMirrorStream}));
  }
  // Sending only reads.
  const std::span<float> sent(const_cast<float*>(own.data()), own.size());
  works_.push_back(group_.send_async(partner_, std::as_writable_bytes(sent), {.stream = kMirrorStream}));
}

void Mirror::fill() {
  std::vector<float> own;
  for (std::size_t bucket = 0; bucket < holding_.partition.buckets.size(); ++bucket) {
    const Range all = {0, holding_.partition.own[bucket].size()};
    own.resize(all.size());
    for (int quantity = 0; quantity < weights_.quantities(); ++quantity) {
      weights_.copy_quantity(quantity, bucket, all, own);
      start_exchange(own, [&](const MirroredShare& share) { return share.of(quantity, bucket); });
      finish_taking();
    }
  }
  applied_.assign(applied_.size(), decided_);
}

void Mirror::start_taking(std::size_t bucket, std::span<const float> own) {
  const std::size_t place = decided_ % kept_.size();
  start_exchange(own, [&](const MirroredShare& share) { return share.gradients(place, bucket); });
}

void Mirror::finish_taking() {
  for (comm::Work& work : works_) work.wait();
  works_.clear();
}

void Mirror::update(const OptimizerStep& how, float gradient_scale) {
  const std::size_t place = decided_ % kept_.size();
  kept_[place] = {.how = how, .gradient_scale = gradient_scale, .place = place};
  ++decided_;
  // The part that was updated the longest ago, and the only one that still needs the gradients whose place
  // the next step takes.
  catch_up(decided_ % kept_.size());
}

void Mirror::catch_up(std::size_t part) {
  std::vector<MirroredShare::Step> steps;
  for (; applied_[part] < decided_; ++applied_[part]) {
    steps.push_back(kept_[applied_[part] % kept_.size()]);
  }
  for (const MirroredShare& share : shares_) {
    share.apply(steps, holding_.layout, chunk_range(share.size(), applied_.size(), part));
  }
}

const std::vector<MirroredShare>& Mirror::shares() {
  for (std::size_t part = 0; part < applied_.size(); ++part) catch_up(part);
  return shares_;
}

}  // namespace lockstep::train
