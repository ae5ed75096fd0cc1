// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "lockstep/base/large_memory.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/train/holding.h"
#include "lockstep/train/share_update.h"
#include "lockstep/train/weights.h"

namespace lockstep::train {

// The share of the training state that another rank has, kept up to date by doing that rank's updates here as
// well.
class MirroredShare {
 public:
  MirroredShare(Rank owner, const Holding& holding, int quantities);

  Rank owner() const { return owner_; }
  // By bucket: what the owner has, and all of a quantity of it (Weights::quantities()).
  const std::vector<Range>& shares() const { return shares_; }
  std::span<float> of(int quantity, std::size_t bucket) const;

  std::size_t size() const { return begins_.back(); }
  // Of the bucket, in `all` that are of this share.
  std::span<float> part_of(std::span<float> all, std::size_t bucket) const {
    return all.subspan(begins_[bucket], shares_[bucket].size());
  }

 private:
  Rank owner_;
  std::vector<Range> shares_;
  std::vector<std::size_t> begins_;  // by bucket, in the memory of a quantity; then their sum
  LargeMemory state_;                // by quantity
};

// What this rank mirrors of the sharing group, so that the share of a lost rank is not lost. It costs the
// gradients of a share on the wire, and an update more.
class Mirror {
 public:
  // Whether a lost rank would take something with it that no other has, and there is another.
  static bool is_needed(const Holding& holding);

  // Where it is needed. Both must outlive this.
  Mirror(const Holding& holding, const Weights& weights);

  // All ranks of the sharing group together: the state as it is now.
  void fill();
  // The same, when the gradients of a step are summed: those of every bucket, of the share.
  using Gradients = std::span<const float>;
  void take_gradients(const std::vector<Gradients>& own);
  // Applies these.
  void update(const OptimizerStep& how, float gradient_scale);

  // None, or several where hosts have different numbers of ranks.
  const std::vector<MirroredShare>& shares() const { return shares_; }

 private:
  // What this rank has goes to its mirror, and what is mirrored here comes to the place of each share.
  using PlaceOf = std::function<std::span<float>(std::size_t share)>;
  std::vector<comm::Work> start_exchange(std::span<const float> own, const PlaceOf& place_of) const;

  const Holding& holding_;
  const Weights& weights_;
  const comm::Communicator& group_;  // those that share
  Rank partner_;                     // mirrors this rank
  std::vector<MirroredShare> shares_;
  std::vector<comm::Buffer> gradients_;  // by share
};

}  // namespace lockstep::train
