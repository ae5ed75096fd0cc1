// SPDX-License-Identifier: Apache-2.0
#include "lockstep/mesh/mirrors.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <tuple>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

// The ranks host by host, those of the largest host first.
struct Row {
  std::vector<Rank> ranks;
  std::size_t largest = 0;  // ranks on that host
};

Row row_of(std::span<const int> hosts) {
  std::map<int, std::size_t> sizes;
  for (const int host : hosts) ++sizes[host];
  Row row;
  row.ranks.resize(hosts.size());
  std::iota(row.ranks.begin(), row.ranks.end(), 0);
  std::ranges::stable_sort(row.ranks, {}, [&](Rank rank) {
    const int host = hosts[static_cast<std::size_t>(rank)];
    return std::tuple(hosts.size() - sizes[host], host);
  });
  for (const auto& [host, size] : sizes) row.largest = std::max(row.largest, size);
  return row;
}

std::size_t mirror_of(std::size_t place, std::size_t largest, std::size_t size) {
  if (largest == size) return (place + 1) % size;
  // A step of the largest host leaves every host, also round the end while the others are as many.
  if (2 * largest <= size) return (place + largest) % size;
  return place < largest ? largest + place % (size - largest) : place - largest;
}

}  // namespace

std::vector<Rank> mirrors_by_rank(std::span<const int> hosts) {
  LOCKSTEP_CHECK(hosts.size() >= 2);
  const Row row = row_of(hosts);
  std::vector<Rank> mirrors(hosts.size());
  for (std::size_t place = 0; place < hosts.size(); ++place) {
    mirrors[static_cast<std::size_t>(row.ranks[place])] =
        row.ranks[mirror_of(place, row.largest, hosts.size())];
  }
  return mirrors;
}

}  // namespace lockstep
