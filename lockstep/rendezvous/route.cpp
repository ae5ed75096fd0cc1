// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include "lockstep/base/error.h"
#include "lockstep/rendezvous/rendezvous.h"
#include "lockstep/transport/connect/socket.h"

namespace lockstep::rendezvous {
namespace {

using transport::Descriptor;
using transport::SocketAddress;

std::string numeric_host(const SocketAddress& address) {
  std::array<char, NI_MAXHOST> host{};
  const int error =
      ::getnameinfo(address.get(), address.length, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST);
  if (error != 0) throw CommError(fmt::format("cannot read our own address: {}", ::gai_strerror(error)));
  return host.data();
}

// Connecting a datagram socket only looks up the route.
std::string local_end_towards(const SocketAddress& master) {
  const Descriptor socket(::socket(master.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  SocketAddress local{.storage = {}, .length = sizeof(sockaddr_storage)};
  if (!socket || ::connect(socket.get(), master.get(), master.length) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&local.storage), &local.length) != 0) {
    throw CommError(std::strerror(errno));
  }
  return numeric_host(local);
}

}  // namespace

std::string route_address(const Placement& placement, Deadline deadline) {
  if (!placement.address.value.empty()) return placement.address.value;
  try {
    return local_end_towards(transport::resolve(placement.master(), deadline).front());
  } catch (const CommError& error) {
    throw CommError(fmt::format("no route from this host to the master {} from {}: {}",
                                placement.master_host.value, placement.master_host.source, error.what()));
  }
}

}  // namespace lockstep::rendezvous
