// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/neighbours.h"

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/deadline.h"

namespace lockstep::cli {
namespace {

using comm::Communicator;
using transport::Address;
using transport::Credentials;
using transport::Secret;

constexpr std::chrono::seconds kLimit{30};
constexpr std::size_t kSecretDigits = 64;

Address on_loopback(std::uint16_t port) {
  return {.host = "127.0.0.1", .port = port, .unix_name = {}};
}

// Others who know the secret are not the one that is awaited.
std::unique_ptr<transport::Connection> accept_from(Rank rank, transport::Listener& door, Deadline deadline) {
  for (;;) {
    transport::AuthenticatedConnection caller = door.accept(deadline);
    if (caller.peer.rank == rank) return std::move(caller.connection);
  }
}

}  // namespace

Credentials ring_credentials(const Communicator& communicator) {
  std::string secret(kSecretDigits, '\0');
  if (communicator.rank() == 0) secret = Secret::generate().value_for_environment();
  communicator.broadcast(std::as_writable_bytes(std::span(secret)), {.dtype = DType::uint8, .root = 0});
  return {.me = {.role = "neighbours", .rank = communicator.rank(), .run = "bench", .generation = 0},
          .secret = Secret::from_value(secret),
          .tls = nullptr};
}

transport::Listener ring_door(const Credentials& credentials) {
  return transport::Listener(on_loopback(0), credentials);
}

Neighbours join_neighbours(const Communicator& communicator, const Credentials& credentials,
                           transport::Listener& door) {
  std::vector<std::int32_t> ports(static_cast<std::size_t>(communicator.size()));
  ports[static_cast<std::size_t>(communicator.rank())] = door.address().port;
  communicator.all_gather(std::as_writable_bytes(std::span(ports)), {.dtype = DType::int32});

  const auto next = static_cast<std::size_t>((communicator.rank() + 1) % communicator.size());
  const Rank previous = (communicator.rank() + communicator.size() - 1) % communicator.size();
  const Deadline deadline = Deadline::after(kLimit);
  Neighbours neighbours;
  neighbours.next =
      transport::dial(on_loopback(static_cast<std::uint16_t>(ports[next])), credentials, deadline).connection;
  neighbours.previous = accept_from(previous, door, deadline);
  return neighbours;
}

}  // namespace lockstep::cli
