// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/cli/system_facts.h"
#include "lockstep/rendezvous/placement.h"

namespace lockstep::cli {

// Whether a transport works here: tried, not guessed.
struct TransportCheck {
  std::string name;
  bool available = false;
  std::string detail;  // what was tried, or why it is not available
};

struct SecretCheck {
  enum class Origin { none, value, file } origin = Origin::none;
  std::string file;     // when it comes from a file
  std::string problem;  // why it cannot be used; empty: it can
  bool tls = false;     // certificates are set
};

// The measured links that algorithms are chosen by.
struct LinkModelCheck {
  std::string file;     // that LOCKSTEP_LINK_MODEL names; empty: the built-in figures
  std::string problem;  // why it cannot be used; empty: it can
};

// All that `lockstep doctor` found out.
struct Examination {
  std::optional<rendezvous::Placement> placement;
  std::string placement_problem;  // when there is no placement
  SystemFacts system;
  std::vector<TransportCheck> transports;
  std::string serving_problem;  // why the ranks cannot meet at this process; empty: they can, or need not
  std::string mpi_lack;         // why ranks would not do well over MPI; empty: they would, or it is not there
  bool under_mpi = false;       // MPI's launcher started this process
  SecretCheck secret;
  LinkModelCheck links;
  std::vector<std::string> unread_variables;  // sentences
  bool met = false;  // the ranks have met, which proves more about the network than any guess
};

struct Diagnosis {
  std::vector<std::string> problems;  // a run would fail
  std::vector<std::string> advice;    // a run would be slower than it could be, or other than it was meant
};

// Pure: plain sentences, each with what to do.
Diagnosis diagnose(const Examination& examination);

// Tries shm (a sealed memory file), tcp (a loopback listener) and mpi (was it built in).
std::vector<TransportCheck> check_transports();

// Tries to listen where the other ranks would look for this process; empty also where they look for another.
std::string check_serving(const rendezvous::Placement& placement);

// Whether the ranks that mpirun starts here would have the memory that Open MPI needs; empty also where there
// is no mpirun, or no MPI in this build.
std::string check_mpi_room(int ranks);

// Looks where the secret would come from, without printing or keeping it.
SecretCheck check_secret();

LinkModelCheck check_link_model();

}  // namespace lockstep::cli
