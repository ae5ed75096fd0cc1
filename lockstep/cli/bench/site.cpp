// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/site.h"

#include <algorithm>
#include <numeric>

namespace lockstep::cli {

std::string transport_of(const Site& site) {
  if (site.transport != "auto") return site.transport;
  const std::vector<int>& hosts = site.ranks_per_host;
  if (hosts.size() < 2) return "shm";
  return std::ranges::all_of(hosts, [](int ranks) { return ranks == 1; }) ? "tcp" : "shm+tcp";
}

std::vector<int> pretended_hosts(const Site& site) {
  std::vector<int> host_of;
  int host = 0;
  for (const int ranks : site.ranks_per_host) {
    host_of.insert(host_of.end(), static_cast<std::size_t>(ranks), host++);
  }
  return host_of;
}

comm::Topology topology_of(const Site& site) {
  if (!site.ranks_per_host.empty()) return {.host_of = pretended_hosts(site)};
  comm::Topology topology{.host_of = std::vector<int>(static_cast<std::size_t>(site.ranks), 0)};
  // Over tcp and mpi nobody is nearer than anybody else: comm::connect() counts every rank as a host.
  if (site.transport == "tcp" || site.transport == "mpi")
    std::iota(topology.host_of.begin(), topology.host_of.end(), 0);
  return topology;
}

comm::LinkModel links_of(const Site& site, const comm::LinkModel& model) {
  return site.transport == "mpi" ? comm::over_mpi(model) : model;
}

}  // namespace lockstep::cli
