// SPDX-License-Identifier: Apache-2.0
#include "lockstep/mesh/mirrors.h"

#include <tuple>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

int distance(Rank from, Rank to, std::size_t size) {
  const auto ranks = static_cast<Rank>(size);
  return (to - from + ranks) % ranks;
}

}  // namespace

std::vector<Rank> mirrors_by_rank(std::span<const int> hosts) {
  LOCKSTEP_CHECK(hosts.size() >= 2);
  std::vector<Rank> mirrors;
  std::vector<int> mirrored(hosts.size(), 0);
  for (Rank rank = 0; rank < std::ssize(hosts); ++rank) {
    // The least of: on the same host, how many it has, how far behind this rank.
    const auto cost = [&](Rank other) {
      const auto o = static_cast<std::size_t>(other);
      return std::tuple(other == rank, hosts[o] == hosts[static_cast<std::size_t>(rank)], mirrored[o],
                        distance(rank, other, hosts.size()));
    };
    Rank best = rank;
    for (Rank other = 0; other < std::ssize(hosts); ++other) {
      if (cost(other) < cost(best)) best = other;
    }
    mirrors.push_back(best);
    ++mirrored[static_cast<std::size_t>(best)];
  }
  return mirrors;
}

}  // namespace lockstep
