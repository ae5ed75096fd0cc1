// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/base/rank.h"
#include "lockstep/rendezvous/environment.h"
#include "lockstep/transport/connect/address.h"
#include "lockstep/transport/connect/secret.h"

namespace lockstep::rendezvous {

// What the workers of one launcher have in common.
struct WorkerGroup {
  int world = 1;
  Rank first_rank = 0;  // of this launcher's workers
  int local_world = 1;
  int node_rank = 0;
  transport::Address master;  // where a launcher serves the rendezvous
  std::string run;
  transport::Secret secret;  // handed on by value; empty: the workers find it as the launcher did
  int cores = 1;             // of this host, to share among the workers
  int pretended_hosts = 1;   // as LaunchOptions has them
};

// That of the environment; one is made when there is none and the workers are all on this host, for nobody
// else would know it.
transport::Secret secret_for_workers(bool one_host);

// UsageError when workers would be refused at the address, before any of them is started.
void require_secret(const transport::Address& master, const transport::Secret& secret);

// Pure: the environment of one worker, from the launcher's own. What other launchers left there about ranks
// under names that would be believed first is removed; OMP_NUM_THREADS is kept when it is set.
Environment worker_environment(const Environment& base, const WorkerGroup& group, int local_rank);

}  // namespace lockstep::rendezvous
