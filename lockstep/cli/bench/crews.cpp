// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/crews.h"

#include <fmt/format.h>

#include "lockstep/comm/algorithm_name.h"
#include "lockstep/rendezvous/open_files.h"

namespace lockstep::cli {

std::unique_ptr<Crew> start_crew(const Site& site, rendezvous::SignalInbox& signals) {
  // For each rank a few: to watch it, to speak with it, for the meeting, and from every rank to every other.
  rendezvous::require_open_files(fmt::format("a benchmark of {} ranks", site.ranks),
                                 24 + 6 * static_cast<std::uint64_t>(site.ranks));
  const std::string transport = transport_of(site);
  if (transport == "loopback") return start_thread_crew(site.ranks, pretended_hosts(site), signals);
  if (transport == "mpi") return start_crew_over_mpi(site.ranks, signals);
  const comm::Carrier carrier =
      transport == "shm+tcp" ? comm::Carrier::automatic : comm::parse_carrier(transport);
  return start_process_crew({site.ranks, carrier, pretended_hosts(site)}, signals);
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
