// SPDX-License-Identifier: Apache-2.0
//
// Native sockets, all close-on-exec and non-blocking.
#pragma once

#include <string>
#include <vector>

#include <sys/socket.h>

#include "lockstep/base/deadline.h"
#include "lockstep/transport/connect/address.h"
#include "lockstep/transport/connect/connection.h"

namespace lockstep::transport {

// An address as the system calls take it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

// False when the deadline passed first.
bool wait_ready(int fd, Readiness readiness, Deadline deadline);

// What the name stands for; names are looked up at most until the deadline. CommError with the reason when
// there is nothing (yet).
std::vector<SocketAddress> resolve(const Address& address, Deadline deadline);

// UsageError when the address is in use, not ours, unknown or needs privileges.
Descriptor open_listening_socket(const Address& address);

// The address with the port the system chose.
Address bound_address(int fd, const Address& asked);

// CommError with the reason when it does not come about by the deadline.
Descriptor connect_socket(const SocketAddress& to, Deadline deadline);

// The next waiting connection; nothing when there is none. `error` gets errno, or 0.
Descriptor accept_socket(int listening, int& error);

// What went wrong in words, with what to do when descriptors lack.
std::string reason_of(int error);

// TCP_NODELAY, keepalive, and a limit on how long sent bytes may stay unacknowledged; Unix sockets need none.
void set_connection_options(int fd);

// "10.0.0.2:41234", "a process of this host", or "an unknown peer" when the connection is gone.
std::string describe_peer(int fd);

// Whether both ends are on this host: they have the same address, or need none.
bool peer_shares_host(int fd);

// Whether the other end has a loopback address (not: any address of this host).
bool peer_is_loopback(int fd);

// Whether the other end of a Unix socket runs as our user; true for other sockets.
bool peer_is_our_user(int fd);

}  // namespace lockstep::transport
