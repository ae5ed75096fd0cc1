// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lockstep/base/large_memory.h"
#include "lockstep/base/rank.h"
#include "lockstep/train/holding.h"
#include "lockstep/train/share_update.h"

namespace lockstep::train {

// The share of the training state that another rank has.
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

  // One step of the optimizer for a bucket, from an element of the share on; `gradients` are those of all of
  // it.
  void update(const OptimizerStep& how, const model::FlatLayout& layout, std::size_t bucket,
              std::size_t first, std::span<const float> gradients, float gradient_scale) const;

 private:
  Rank owner_;
  int quantities_;
  std::vector<Range> shares_;
  std::vector<std::size_t> begins_;  // by bucket, in the memory of a quantity; then their sum
  LargeMemory state_;                // by quantity
};

}  // namespace lockstep::train
