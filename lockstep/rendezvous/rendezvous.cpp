// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/rendezvous.h"

#include <algorithm>
#include <chrono>
#include <stop_token>

#include <fmt/format.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/base/failpoint.h"
#include "lockstep/rendezvous/background.h"
#include "lockstep/rendezvous/client.h"
#include "lockstep/rendezvous/host_id.h"
#include "lockstep/rendezvous/server.h"
#include "lockstep/transport/connect/socket.h"

namespace lockstep::rendezvous {
namespace {

constexpr std::chrono::seconds kAskOtherRank0{2};

Peer self(const Placement& placement, const LocalInfo& local) {
  return {.rank = placement.rank.value,
          .pid = static_cast<std::uint64_t>(::getpid()),
          .host_id = placement.host_id.value,
          .host_name = host_name(),
          .tcp_address = local.tcp_address};
}

PeerTable meet_at_master(const Placement& placement, const transport::Secret& secret, const LocalInfo& local,
                         Deadline deadline) {
  const Arrival arrival{.peer = self(placement, local),
                        .world = placement.world.value,
                        .version = std::string(version()),
                        .digest = local.digest,
                        .patience_ms = 0};
  const transport::Credentials credentials{.me = {.role = "rendezvous",
                                                  .rank = placement.rank.value,
                                                  .run = placement.run.value,
                                                  .generation = placement.generation.value},
                                           .secret = secret,
                                           .tls = local.tls};
  LOCKSTEP_FAILPOINT("rendezvous.before_meet");
  PeerTable table = meet(placement.master(), arrival, credentials, deadline, local.stop);
  LOCKSTEP_FAILPOINT("rendezvous.table_received");
  return table;
}

bool serves(const Placement& placement) {
  return placement.world.value > 1 && placement.rank.value == 0 && placement.served_by_rank0.value;
}

UsageError cannot_serve(const Placement& placement, const UsageError& why) {
  return UsageError(fmt::format("rank 0 cannot serve the rendezvous (host from {}, port from {}): {}",
                                placement.master_host.source, placement.master_port.source, why.what()));
}

// If the port is taken by another process that believes it is rank 0, that one names us both to all ranks.
void ask_other_rank0(const Placement& placement, const transport::Secret& secret, const LocalInfo& local,
                     Deadline deadline) {
  const auto patience = std::min<std::chrono::nanoseconds>(deadline.left(), kAskOtherRank0);
  try {
    meet_at_master(placement, secret, local, Deadline::after(patience));
  } catch (const CommError&) {
    // Whoever listens there is not of our run.
  } catch (const DataError&) {
  }
}

Server serve_as_rank0(const Placement& placement, const transport::Secret& secret, const LocalInfo& local,
                      Deadline deadline) {
  try {
    return Server({.listen = listening_address(placement.master()),
                   .world = placement.world.value,
                   .run = placement.run.value,
                   .generation = placement.generation.value,
                   .secret = secret,
                   .tls = local.tls});
  } catch (const UsageError& error) {
    const bool may_dial = is_loopback(placement.master()) || !secret.empty() || local.tls;
    if (may_dial) ask_other_rank0(placement, secret, local, deadline);
    throw cannot_serve(placement, error);
  }
}

}  // namespace

std::string_view version() {
  return LOCKSTEP_VERSION;
}

void try_to_serve(const Placement& placement) {
  if (!serves(placement)) return;
  try {
    transport::open_bound_socket(listening_address(placement.master()));
  } catch (const UsageError& error) {
    throw cannot_serve(placement, error);
  }
}

PeerTable rendezvous(const Placement& placement, const transport::Secret& secret, const LocalInfo& local,
                     Deadline deadline) {
  failpoint::set_rank(placement.rank.value);
  if (placement.world.value == 1) return {{self(placement, local)}, fresh_nonce()};
  if (!serves(placement)) return meet_at_master(placement, secret, local, deadline);
  Server server = serve_as_rank0(placement, secret, local, deadline);
  // Leaving this scope asks the thread to stop and waits for it: a server that is answering finishes first.
  Background serving([&](const std::stop_token& stop) { server.serve(deadline, stop); });
  try {
    // Through the master's address, not directly: a second rank 0 on another host is found out this way.
    return meet_at_master(placement, secret, local, deadline);
  } catch (const CommError&) {
    // A server that fails drops its connections first.
    serving.stop();
    if (serving.failed()) serving.rethrow();
    throw;
  }
}

}  // namespace lockstep::rendezvous
