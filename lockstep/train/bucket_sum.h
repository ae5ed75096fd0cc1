// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "lockstep/train/gradient_sum.h"
#include "lockstep/train/holding.h"

namespace lockstep::train {

// How the gradients of a bucket come to the ranks that update with them: in one sum over all data-parallel
// ranks; or, when every host has a copy of what is updated, inside each host first and then over hosts, which
// sends the share of a rank over the network instead of all gradients. That is the order of the lane tree
// when the lanes of every host are one subtree of it, all of a size. With other lanes the one sum is made,
// and each rank takes its share of it.
class BucketSum {
 public:
  // UsageError as GradientSum.
  BucketSum(const Holding& holding, const LaneOwnership& lanes, const SumOptions& options);

  // Of the first sum, as GradientSum has them.
  bool takes_one_value() const { return first_.takes_one_value(); }
  comm::Work start(std::span<const Bytes> partials, Bytes result) const {
    return first_.start(partials, result);
  }

  // What is missing of the share that the first sum has left; nothing may be.
  comm::Work add_hosts(Bytes share) const;

 private:
  GradientSum first_;
  std::optional<GradientSum> over_hosts_;
};

// True when each of `hosts` equal runs of ranks owns one subtree of the lanes, all of a size.
bool hosts_own_subtrees(const LaneOwnership& lanes, int hosts);

}  // namespace lockstep::train
