// SPDX-License-Identifier: Apache-2.0
//
// Native sockets, all close-on-exec and non-blocking.
#pragma once

#include <stop_token>
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

// False when the deadline passed first, or the caller is to stop. CommError when a stop cannot be watched
// for.
bool wait_ready(int fd, Readiness readiness, Deadline deadline, const std::stop_token& stop = {});

// What the name stands for; names are looked up at most until the deadline. CommError with the reason when
// there is nothing (yet).
std::vector<SocketAddress> resolve(const Address& address, Deadline deadline);

// Whether this host can have IPv6 sockets.
bool has_ipv6();

// "::" means IPv4 as well. UsageError when the address is in use, not ours, unknown or needs privileges.
Descriptor open_listening_socket(const Address& address);

// The same without listening: who connects finds nobody, and open_listening_socket() finds the address free.
Descriptor open_bound_socket(const Address& address);

// The address with the port the system chose.
Address bound_address(int fd, const Address& asked);

// CommError with the reason when it does not come about by the deadline, or before the caller is to stop.
Descriptor connect_socket(const SocketAddress& to, Deadline deadline, const std::stop_token& stop = {});

// The first of the addresses (at least one) that answers. Each that does not gets its share of the time, so
// that one which swallows packets leaves some to the others. CommError with the reason of the last.
Descriptor connect_to_any(const std::vector<SocketAddress>& addresses, Deadline deadline,
                          const std::stop_token& stop = {});

// The next waiting connection; nothing when there is none. `error` gets errno, or 0.
Descriptor accept_socket(int listening, int& error);

// What went wrong in words, with what to do when descriptors lack.
std::string reason_of(int error);

// TCP_NODELAY, and keepalive that notices within 30 s that the other host has vanished while the connection
// is idle; Unix sockets need none.
void set_connection_options(int fd);

// The two ends of a connection; of length 0 when it is gone.
SocketAddress local_end(int fd);
SocketAddress remote_end(int fd);

// "10.0.0.2:41234", "a process of this host", or "an unknown peer" when the connection is gone.
std::string describe_peer(int fd);

// Whether both ends are on this host: they have the same address, or need none.
bool peer_shares_host(int fd);

// Whether the other end has a loopback address (not: any address of this host).
bool peer_is_loopback(int fd);

}  // namespace lockstep::transport
