// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include <CLI/App.hpp>

#include "lockstep/base/error.h"
#include "lockstep/cli/commands.h"
#include "lockstep/cli/diagnosis.h"
#include "lockstep/cli/doctor_report.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/cli/mpi_room.h"
#include "lockstep/cli/output.h"
#include "lockstep/cli/placement_flags.h"
#include "lockstep/cli/variables.h"
#include "lockstep/rendezvous/rendezvous.h"

namespace lockstep::cli {
namespace {

struct DoctorFlags {
  PlacementFlags placement;
  bool json = false;
  bool meet = false;
};

// At least two: one alone needs no memory to talk through.
int ranks_here(const std::optional<rendezvous::Placement>& placement) {
  return std::max(2, placement ? placement->local_world.value.value_or(2) : 2);
}

Examination examine(const PlacementFlags& flags, bool met) {
  const rendezvous::Environment environment = rendezvous::process_environment();
  Examination result;
  result.met = met;
  try {
    result.placement = flags.resolve();
  } catch (const UsageError& error) {
    result.placement_problem = error.what();
  }
  result.system = read_system_facts();
  result.transports = check_transports();
  if (result.placement && !met) result.serving_problem = check_serving(*result.placement);
  result.mpi_lack = check_mpi_room(ranks_here(result.placement));
  result.under_mpi = started_by_mpi(environment);
  result.secret = check_secret();
  result.links = check_link_model();
  result.unread_variables = unread_variables(environment);
  return result;
}

rendezvous::PeerTable meet(const rendezvous::Placement& placement) {
  rendezvous::LocalInfo local;
  local.tls = transport::tls_from_environment();
  return rendezvous::rendezvous(placement, transport::Secret::from_environment(), local,
                                Deadline::after(placement.timeout.value));
}

int doctor(const DoctorFlags& flags) {
  // Meeting comes first and raises its own errors: a rank that cannot meet must say so in one sentence.
  std::optional<rendezvous::PeerTable> peers;
  if (flags.meet) peers = meet(flags.placement.resolve());
  const Examination examination = examine(flags.placement, peers.has_value());
  const Diagnosis diagnosis = diagnose(examination);
  print(std::cout,
        flags.json ? report_json(examination, diagnosis, peers) : report_text(examination, diagnosis, peers));
  return diagnosis.problems.empty() ? kDone : kBadUsage;
}

}  // namespace

void add_doctor(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Show where every setting comes from, what the host offers, and what is wrong");
  command->footer(
      "Exit code 0: all is well. With --meet every rank of the run must be started, for example\n"
      "`srun lockstep doctor --meet` or `lockstep launch -n 4 lockstep doctor --meet`.");
  const auto flags = std::make_shared<DoctorFlags>();  // shared by the options and the action
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->add_flag("--meet", flags->meet, "Also meet the other ranks and list them");
  flags->placement.add_to(*command);
  command->callback([flags, &invocation] { invocation.action = [flags] { return doctor(*flags); }; });
}

}  // namespace lockstep::cli
