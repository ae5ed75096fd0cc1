// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/crews.h"

#include <numeric>
#include <vector>

namespace lockstep::cli {

std::string resolved_transport(const std::string& transport) {
  return transport == "auto" ? "shm" : transport;
}

std::unique_ptr<Crew> start_crew(int ranks, const std::string& transport) {
  if (transport == "loopback") return start_thread_crew(ranks);
  return start_process_crew(ranks, comm::parse_carrier(transport));
}

comm::Topology topology_of(int ranks, const std::string& transport) {
  comm::Topology topology{.host_of = std::vector<int>(static_cast<std::size_t>(ranks), 0)};
  // Over tcp nobody is nearer than anybody else: comm::connect() counts every rank as a host.
  if (transport == "tcp") std::iota(topology.host_of.begin(), topology.host_of.end(), 0);
  return topology;
}

schedule::CollectiveSpec spec_of(const Case& what, int ranks) {
  schedule::CollectiveSpec spec;
  spec.op = what.op;
  spec.world = ranks;
  spec.count = what.bytes / size_of(what.dtype);
  if (what.op == schedule::Op::all_to_all) spec.count /= static_cast<std::size_t>(ranks);
  return spec;
}

}  // namespace lockstep::cli
