// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/bucket_sum.h"

#include <numeric>

namespace lockstep::train {
namespace {

// Those of one host, counted from its first.
LaneOwnership lanes_of_host(const LaneOwnership& lanes, int host, int ranks) {
  LaneOwnership own;
  const auto first = static_cast<std::size_t>(host * ranks);
  for (std::size_t i = 0; i <= static_cast<std::size_t>(ranks); ++i) {
    own.first_lane.push_back(lanes.first_lane[first + i] - lanes.first_lane[first]);
  }
  return own;
}

LaneOwnership one_each(int ranks) {
  LaneOwnership lanes = {std::vector<int>(static_cast<std::size_t>(ranks) + 1)};
  std::iota(lanes.first_lane.begin(), lanes.first_lane.end(), 0);
  return lanes;
}

bool sums_inside_hosts(const Holding& holding, const LaneOwnership& lanes, const SumOptions& options) {
  return holding.copies_on_hosts &&
         (!options.exact || hosts_own_subtrees(lanes, holding.groups.copies.size()));
}

GradientSum first_sum(const Holding& holding, const LaneOwnership& lanes, const SumOptions& options) {
  const Groups& groups = holding.groups;
  if (sums_inside_hosts(holding, lanes, options)) {
    return {groups.sharing, lanes_of_host(lanes, groups.copies.rank(), groups.sharing.size()), true, options};
  }
  const bool scatters = holding.partition.shards_update && !holding.copies_on_hosts;
  return {groups.data, lanes, scatters, options};
}

}  // namespace

bool hosts_own_subtrees(const LaneOwnership& lanes, int hosts) {
  if (lanes.lanes() % hosts != 0) return false;
  for (int host = 0; host < hosts; ++host) {
    const auto first = static_cast<std::size_t>(lanes.world() / hosts * host);
    if (lanes.first_lane[first] != lanes.lanes() / hosts * host) return false;
  }
  return true;
}

BucketSum::BucketSum(const Holding& holding, const LaneOwnership& lanes, const SumOptions& options)
    : first_(first_sum(holding, lanes, options)) {
  if (!sums_inside_hosts(holding, lanes, options)) return;
  const comm::Communicator& hosts = holding.groups.copies;
  over_hosts_.emplace(hosts, one_each(hosts.size()), false, options);
}

comm::Work BucketSum::add_hosts(Bytes share) const {
  return over_hosts_ ? over_hosts_->start({&share, 1}, share) : comm::Work();
}

}  // namespace lockstep::train
