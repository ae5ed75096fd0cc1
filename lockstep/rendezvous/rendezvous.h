// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "lockstep/base/deadline.h"
#include "lockstep/rendezvous/placement.h"
#include "lockstep/rendezvous/table.h"
#include "lockstep/transport/connect/secret.h"
#include "lockstep/transport/connect/tls.h"

namespace lockstep::rendezvous {

// What this rank brings beside its placement.
struct LocalInfo {
  std::string tcp_address;  // where it listens for peers, as they reach it (see route_address)
  std::string digest;       // of what all ranks must have in common; may be empty
  std::shared_ptr<transport::TlsContext> tls;  // shared by all connections of the process; may be null
  std::stop_token stop = {};                   // to give up, with Aborted
};

// All ranks call this; each returns the same table once all have come. Rank 0 serves unless a launcher does.
// A world of one returns at once and uses no network. Errors as meet(), and UsageError when rank 0 cannot
// listen (port in use, or no secret for an address that others can reach).
PeerTable rendezvous(const Placement& placement, const transport::Secret& secret, const LocalInfo& local,
                     Deadline deadline);

// Whether rendezvous() could listen, where this process would: binds the address for a moment, unseen by
// other ranks. UsageError as rendezvous() for a port in use; a secret is not asked for.
void try_to_serve(const Placement& placement);

// The address of this host that its packets to `master` carry: what peers that reach the master can reach.
// placement.address when it is given; sends nothing. CommError when there is no route.
std::string route_address(const Placement& placement, Deadline deadline);

// "0.1.0"; ranks of different versions do not meet.
std::string_view version();

}  // namespace lockstep::rendezvous
