// SPDX-License-Identifier: Apache-2.0
#include "lockstep/mesh/host_grid.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/counted.h"
#include "lockstep/base/error.h"
#include "lockstep/mesh/hosts.h"

namespace lockstep {
namespace {

// Of some ranks, in their order.
Hosts hosts_of(const std::vector<Rank>& ranks, std::span<const int> host_of) {
  std::vector<std::string> ids;
  for (Rank rank : ranks) ids.push_back(std::to_string(host_of[static_cast<std::size_t>(rank)]));
  return Hosts(ids);
}

bool all_equal(const std::vector<int>& counts) {
  return std::ranges::all_of(counts, [&](int count) { return count == counts.front(); });
}

std::optional<HostGrid> grid_of(const Hosts& hosts) {
  const auto counts = hosts.ranks_per_host();
  if (!counts || !all_equal(*counts)) return std::nullopt;
  return HostGrid{.hosts = hosts.count(), .ranks_per_host = counts->front()};
}

std::string what_would_fit(const Mesh& mesh, std::span<const int> host_of) {
  std::vector<Rank> ranks(static_cast<std::size_t>(mesh.world()));
  for (Rank rank = 0; rank < mesh.world(); ++rank) ranks[static_cast<std::size_t>(rank)] = rank;
  const auto counts = hosts_of(ranks, host_of).ranks_per_host();
  if (!counts) return "number the workers host by host";
  if (!all_equal(*counts)) {
    return fmt::format("start as many workers on every host (there are {})", fmt::join(*counts, " + "));
  }
  const std::string product =
      mesh.size(Axis::tensor) > 1 ? "parallelism.data x parallelism.tensor" : "parallelism.data";
  return fmt::format("let {} divide {}, the workers of a host, or be a multiple of it", product,
                     counts->front());
}

// "ranks 0, 1, 2 are 2 + 1 on 2 hosts"
std::string place_in_words(const std::vector<Rank>& group, const Hosts& hosts) {
  std::vector<std::size_t> counts;
  for (int host = 0; host < hosts.count(); ++host) counts.push_back(hosts.ranks_on(host).size());
  return fmt::format("ranks {} are {} on {}{}", fmt::join(group, ", "), fmt::join(counts, " + "),
                     counted(hosts.count(), "host"), hosts.consecutive() ? "" : " in turns");
}

}  // namespace

HostGrid data_grid(const Mesh& mesh, std::span<const int> host_of) {
  LOCKSTEP_CHECK(host_of.size() == static_cast<std::size_t>(mesh.world()), "every rank has a host");
  const std::vector<std::vector<Rank>> groups = mesh.groups(Axis::data);
  const Hosts first = hosts_of(groups.front(), host_of);
  for (const std::vector<Rank>& group : groups) {
    const Hosts hosts = hosts_of(group, host_of);
    const std::optional<HostGrid> grid = grid_of(hosts);
    if (grid && grid == grid_of(first)) continue;
    const std::string other = grid ? " and " + place_in_words(groups.front(), first) : "";
    throw UsageError(
        fmt::format("parallelism.zero_scope = \"host\" needs as many data-parallel workers on every host, "
                    "one host after the other, but {}{}: {}, or use zero_scope = \"world\"",
                    place_in_words(group, hosts), other, what_would_fit(mesh, host_of)));
  }
  return *grid_of(first);
}

}  // namespace lockstep
