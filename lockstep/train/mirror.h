// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/base/large_memory.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/train/holding.h"
#include "lockstep/train/share_update.h"
#include "lockstep/train/weights.h"

namespace lockstep::train {

// How far away in a group the rank is that mirrors one: on another host for all of them if that can be, by
// the hosts of the group's ranks. At least 1.
int distance_to_mirror(std::span<const int> hosts);

// The share of the training state that another rank of the sharing group has, its ward, kept up to date by
// doing the ward's updates here as well: when the ward is lost, its share is not. It costs the gradients of a
// share on the wire, and an update more.
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

  // By bucket: what the ward has, and all of a quantity of it (Weights::quantities()).
  const std::vector<Range>& shares() const { return shares_; }
  std::span<const float> of(int quantity, std::size_t bucket) const;
  Rank ward() const { return (group_.rank() + group_.size() - distance_) % group_.size(); }

 private:
  Rank partner() const { return (group_.rank() + distance_) % group_.size(); }
  std::span<float> place_of(int quantity, std::size_t bucket) const;
  void exchange(Bytes own, Bytes wards) const;

  const Holding& holding_;
  const Weights& weights_;
  const comm::Communicator& group_;  // those that share
  int distance_;
  std::vector<Range> shares_;
  std::vector<std::size_t> begins_;  // by bucket, in the memory of a quantity; then their sum
  LargeMemory state_;                // of the ward: by quantity
  comm::Buffer gradients_;           // of the ward
};

}  // namespace lockstep::train
