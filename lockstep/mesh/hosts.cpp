// SPDX-License-Identifier: Apache-2.0
#include "lockstep/mesh/hosts.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "lockstep/base/error.h"

namespace lockstep {

Hosts::Hosts(std::span<const std::string> host_ids) {
  if (host_ids.empty()) throw UsageError("a host list must name the host of at least one rank");
  std::map<std::string_view, int> number_of;
  for (const std::string& id : host_ids) {
    const int host = number_of.try_emplace(id, count()).first->second;
    if (host == count()) ranks_.emplace_back();
    ranks_[host].push_back(world());
    host_of_.push_back(host);
  }
}

bool Hosts::consecutive() const {
  // Hosts are numbered by first appearance, so a rank that comes back to an earlier host lowers the number.
  return std::ranges::is_sorted(host_of_);
}

std::optional<std::vector<int>> Hosts::ranks_per_host() const {
  if (!consecutive()) return std::nullopt;
  std::vector<int> counts;
  for (const std::vector<Rank>& ranks : ranks_) counts.push_back(static_cast<int>(ranks.size()));
  return counts;
}

}  // namespace lockstep
