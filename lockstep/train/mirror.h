// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lockstep/base/large_memory.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/train/holding.h"
#include "lockstep/train/share_update.h"
#include "lockstep/train/weights.h"

namespace lockstep::train {

// The share of the training state that another rank has, and room for the gradients of some steps that are
// not applied to it yet.
class MirroredShare {
 public:
  MirroredShare(Rank owner, const Holding& holding, int quantities, std::size_t steps);

  Rank owner() const { return owner_; }
  // By bucket: what the owner has, and all of a quantity of it (Weights::quantities()).
  const std::vector<Range>& shares() const { return shares_; }
  std::span<float> of(int quantity, std::size_t bucket) const {
    return part(state_, static_cast<std::size_t>(quantity), of_bucket(bucket));
  }
  // Of all buckets together.
  std::size_t size() const { return begins_.back(); }

  // `place` counts the steps that there is room for.
  std::span<float> gradients(std::size_t place, std::size_t bucket) const {
    return part(gradients_, place, of_bucket(bucket));
  }
  // Applies steps, in this order, to these elements of all buckets together. Of a step: how it is done, and
  // the place of its gradients.
  struct Step {
    OptimizerStep how;
    float gradient_scale = 1.0F;
    std::size_t place = 0;
  };
  void apply(std::span<const Step> steps, const model::FlatLayout& layout, Range elements) const;

 private:
  Range of_bucket(std::size_t bucket) const { return {begins_[bucket], begins_[bucket + 1]}; }
  std::span<float> part(const LargeMemory& of_all, std::size_t index, Range elements) const;

  Rank owner_;
  std::vector<Range> shares_;
  std::vector<std::size_t> begins_;  // by bucket, in the memory of a quantity or a step; then their sum
  int quantities_;
  LargeMemory state_;      // by quantity
  LargeMemory gradients_;  // by place
};

// What this rank mirrors of the sharing group, so that the share of a lost rank is not lost: it gets the
// gradients of a share and does the updates of its owner as well, which costs memory more than computing. So
// it keeps the gradients of up to `steps` steps: with each step it updates one of so many parts of what it
// mirrors, by all gradients that it has kept for that part.
class Mirror {
 public:
  // Whether a lost rank would take something with it that no other has, and there is another.
  static bool is_needed(const Holding& holding);

  // Where it is needed. Both must outlive this.
  Mirror(const Holding& holding, const Weights& weights, std::int64_t steps);
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;
  // As StageMail: cancels what is under way when an exception has ended a step.
  ~Mirror();

  // All ranks of the sharing group together: the state as it is now.
  void fill();
  // The same, when the gradients of a bucket are summed: those of the share. They must stay until
  // finish_taking().
  void start_taking(std::size_t bucket, std::span<const float> own);
  // Returns when those of all buckets are here, and where they were sent to.
  void finish_taking();
  // The step whose gradients were taken last counts, and is done like this. Otherwise the next ones take
  // their place.
  void update(const OptimizerStep& how, float gradient_scale);

  // After all steps that count. None, or several where hosts have different numbers of ranks.
  const std::vector<MirroredShare>& shares();

 private:
  // What this rank has goes to its mirror, and what is mirrored here comes to the place of each share.
  using PlaceOf = std::function<std::span<float>(const MirroredShare& share)>;
  void start_exchange(std::span<const float> own, const PlaceOf& place_of);
  // All steps that count and that the part does not have yet.
  void catch_up(std::size_t part);

  const Holding& holding_;
  const Weights& weights_;
  const comm::Communicator& group_;  // those that share
  Rank partner_;                     // mirrors this rank
  std::vector<MirroredShare> shares_;
  std::vector<MirroredShare::Step> kept_;  // by place: the last steps that count
  std::uint64_t decided_ = 0;              // steps that count, since there is a mirror
  std::vector<std::uint64_t> applied_;     // by part: so many of them
  std::vector<comm::Work> works_;          // under way
};

}  // namespace lockstep::train
