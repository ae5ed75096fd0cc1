// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/shm/mesh.h"

#include <chrono>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/transport/connect/listener.h"

namespace lockstep::transport {
namespace {

Address meeting_place(const ShmOptions& options, Rank rank) {
  Address address;
  address.unix_name = fmt::format("lockstep/{}/{}/{}", options.run, options.generation, rank);
  return address;
}

std::string missing_ranks(const std::vector<std::unique_ptr<Connection>>& connections, Rank me) {
  std::string missing;
  for (Rank rank = me + 1; rank < static_cast<Rank>(connections.size()); ++rank) {
    if (connections[rank] == nullptr) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  }
  return missing;
}

}  // namespace

std::vector<std::unique_ptr<Connection>> connect_shm_mesh(const ShmOptions& options) {
  std::vector<std::unique_ptr<Connection>> connections(static_cast<std::size_t>(options.world));
  const Credentials credentials = {
      .me = {.role = "shm", .rank = options.rank, .run = options.run, .generation = options.generation},
      .secret = options.secret,
      .tls = nullptr};
  // The highest rank listens as well: its name, once taken, keeps a second process from being the same rank.
  Listener listener(meeting_place(options, options.rank), credentials);
  for (Rank peer = 0; peer < options.rank; ++peer) {
    AuthenticatedConnection made =
        dial(meeting_place(options, peer), credentials, options.deadline, options.stop);
    if (made.peer.rank != peer) {
      throw AuthenticationError(
          fmt::format("expected rank {} over shm, rank {} answered", peer, made.peer.rank));
    }
    connections[peer] = std::move(made.connection);
  }
  log::RateLimit refusals(std::chrono::seconds(1));
  for (int expected = options.world - 1 - options.rank; expected > 0;) {
    AuthenticatedConnection made;
    try {
      made = listener.accept(options.deadline, options.stop);
    } catch (const Timeout& timeout) {
      throw Timeout(fmt::format("joining over shm: rank {} did not come: {}",
                                missing_ranks(connections, options.rank), timeout.what()));
    }
    const Rank peer = made.peer.rank;
    if (peer <= options.rank || peer >= options.world || connections[peer] != nullptr) {
      log::warning(refusals,
                   fmt::format("joining over shm: turned away a process that claims to be rank {} of {}",
                               peer, options.world));
      continue;
    }
    connections[peer] = std::move(made.connection);
    --expected;
  }
  return connections;
}

}  // namespace lockstep::transport
