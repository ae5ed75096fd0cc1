// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/rank.h"

namespace lockstep {

// Which ranks of a group share a host. Hosts are numbered from 0 in the order of their lowest ranks.
class Hosts {
 public:
  // One host id per rank; equal ids mean the same host. At least one rank (UsageError).
  explicit Hosts(std::span<const std::string> host_ids);

  int world() const { return static_cast<int>(host_of_.size()); }
  int count() const { return static_cast<int>(ranks_.size()); }
  int host_of(Rank rank) const { return host_of_[rank]; }

  // The ranks on a host, increasing.
  const std::vector<Rank>& ranks_on(int host) const { return ranks_[host]; }

  // True if the ranks of every host follow one another.
  bool consecutive() const;

  // The ranks of each host, counted, when they are consecutive: what CollectiveSpec::ranks_per_host asks.
  std::optional<std::vector<int>> ranks_per_host() const;

 private:
  std::vector<int> host_of_;              // by rank
  std::vector<std::vector<Rank>> ranks_;  // by host
};

}  // namespace lockstep
