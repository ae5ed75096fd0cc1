// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/crews.h"

#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "lockstep/comm/algorithm_name.h"
#include "lockstep/rendezvous/open_files.h"

namespace lockstep::cli {

std::string resolved_transport(const std::string& transport) {
  return transport == "auto" ? "shm" : transport;
}

std::unique_ptr<Crew> start_crew(int ranks, const std::string& transport, rendezvous::SignalInbox& signals) {
  // For each rank a few: to watch it, to speak with it, for the meeting, and from every rank to every other.
  rendezvous::require_open_files(fmt::format("a benchmark of {} ranks", ranks),
                                 24 + 6 * static_cast<std::uint64_t>(ranks));
  if (transport == "loopback") return start_thread_crew(ranks, signals);
  if (transport == "mpi") return start_crew_over_mpi(ranks, signals);
  return start_process_crew(ranks, comm::parse_carrier(transport), signals);
}

comm::Topology topology_of(int ranks, const std::string& transport) {
  comm::Topology topology{.host_of = std::vector<int>(static_cast<std::size_t>(ranks), 0)};
  // Over tcp and mpi nobody is nearer than anybody else: comm::connect() counts every rank as a host.
  if (transport == "tcp" || transport == "mpi")
    std::iota(topology.host_of.begin(), topology.host_of.end(), 0);
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

std::string algorithm_of(const comm::Candidate& candidate) {
  return to_string(comm::AlgorithmName{
      .algorithm = candidate.spec.algorithm, .inner = candidate.spec.inner, .outer = candidate.spec.outer});
}

}  // namespace lockstep::cli
