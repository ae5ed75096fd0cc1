// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/diagnosis.h"

#include <fmt/format.h>

#include "lockstep/rendezvous/open_files.h"

namespace lockstep::cli {
namespace {

// Connections to every peer, their spares during setup, and what any process has open.
constexpr std::uint64_t kFilesPerPeer = 4;
constexpr std::uint64_t kFilesBesides = 24;

void diagnose_network(const rendezvous::Placement& placement, const SecretCheck& secret, Diagnosis& found) {
  if (placement.world.value == 1) return;
  const bool loopback = transport::is_loopback(placement.master());
  if (!loopback && secret.origin == SecretCheck::Origin::none && !secret.tls) {
    found.problems.push_back(fmt::format(
        "ranks will not meet at {} without a secret: make one with `lockstep keygen FILE`, copy it to "
        "all hosts and set LOCKSTEP_SECRET_FILE",
        placement.master().to_string()));
  }
  const int local = placement.local_world.value.value_or(placement.world.value);
  if (loopback && local < placement.world.value) {
    found.problems.push_back(fmt::format(
        "{} of {} ranks are on this host, but the master {} (from {}) is only reachable from this host: "
        "set MASTER_ADDR to an address of rank 0's host",
        local, placement.world.value, placement.master_host.value, placement.master_host.source));
  }
}

// Our own transports do without what MPI lacks, so it matters only to who means to use MPI.
void diagnose_mpi(const Examination& examination, Diagnosis& found) {
  if (examination.under_mpi)
    found.problems.push_back(examination.mpi_lack);
  else
    found.advice.push_back("only where MPI carries the connections: " + examination.mpi_lack);
}

void diagnose_limits(const rendezvous::Placement& placement, const SystemFacts& system, Diagnosis& found) {
  const std::uint64_t needed =
      kFilesBesides + kFilesPerPeer * static_cast<std::uint64_t>(placement.world.value);
  const auto problem =
      rendezvous::too_many_files(fmt::format("a rank of a world of {}", placement.world.value), needed,
                                 {system.open_files_limit, system.open_files_hard_limit});
  if (problem) found.problems.push_back(*problem);
  const int local = placement.local_world.value.value_or(1);
  // Not the cores of this process: a launcher that binds ranks to cores leaves each with few of them.
  if (local > system.cores_online) {
    found.advice.push_back(
        fmt::format("{} ranks share the {} cores of this host: use at most one rank per core for speed",
                    local, system.cores_online));
  }
}

void diagnose_system(const SystemFacts& system, Diagnosis& found) {
  if (system.cores_quota && *system.cores_quota < system.cores_usable) {
    found.advice.push_back(
        fmt::format("the control group allows {:.1f} of {} cores: threads will be throttled",
                    *system.cores_quota, system.cores_usable));
  }
  const std::string& pages = system.huge_pages_for_shared_memory;
  if (pages == "never" || pages == "deny") {
    found.advice.push_back(
        fmt::format("huge pages are off for shared memory ({}): as root, `echo advise > "
                    "/sys/kernel/mm/transparent_hugepage/shmem_enabled` speeds up large buffers",
                    pages));
  }
}

}  // namespace

Diagnosis diagnose(const Examination& examination) {
  Diagnosis found;
  found.advice = examination.unread_variables;
  if (!examination.placement_problem.empty()) found.problems.push_back(examination.placement_problem);
  if (!examination.secret.problem.empty()) found.problems.push_back(examination.secret.problem);
  if (!examination.links.problem.empty()) found.problems.push_back(examination.links.problem);
  for (const TransportCheck& transport : examination.transports) {
    if (!transport.available && transport.name != "mpi") {
      found.problems.push_back(
          fmt::format("the {} transport does not work: {}", transport.name, transport.detail));
    }
  }
  if (!examination.serving_problem.empty()) found.problems.push_back(examination.serving_problem);
  if (!examination.mpi_lack.empty()) diagnose_mpi(examination, found);
  if (examination.placement) {
    if (!examination.met) diagnose_network(*examination.placement, examination.secret, found);
    diagnose_limits(*examination.placement, examination.system, found);
  }
  diagnose_system(examination.system, found);
  return found;
}

}  // namespace lockstep::cli
