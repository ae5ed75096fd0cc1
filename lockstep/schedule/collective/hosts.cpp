// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/hosts.h"

#include <algorithm>
#include <numeric>

namespace lockstep::schedule {

HostLayout::HostLayout(const std::vector<int>& ranks_per_host) : size(ranks_per_host) {
  Rank next = 0;
  for (int ranks : ranks_per_host) {
    first.push_back(next);
    next += ranks;
  }
}

int HostLayout::host_of(Rank rank) const {
  const auto after = std::upper_bound(first.begin(), first.end(), rank);
  return static_cast<int>(after - first.begin()) - 1;
}

std::vector<Rank> HostLayout::ranks_of(int host) const {
  std::vector<Rank> ranks(size[host]);
  std::iota(ranks.begin(), ranks.end(), first[host]);
  return ranks;
}

std::vector<Rank> HostLayout::ranks_in_seat(int seat) const {
  std::vector<Rank> ranks = first;
  for (Rank& rank : ranks) rank += seat;
  return ranks;
}

int owners_per_host(const CollectiveSpec& spec) {
  const bool scatters = spec.op == Op::all_reduce || spec.op == Op::reduce_scatter;
  const bool gathers = spec.op == Op::all_gather || spec.op == Op::all_to_all;
  if (!scatters && !gathers) return 1;
  if (scatters && !supports(spec.inner, Op::reduce_scatter)) return 1;
  return *std::min_element(spec.ranks_per_host.begin(), spec.ranks_per_host.end());
}

GridShape part_grid(int world) {
  return squarest_grid(world, false);
}

}  // namespace lockstep::schedule
