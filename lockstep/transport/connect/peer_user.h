// SPDX-License-Identifier: Apache-2.0
//
// Which user's process is at the other end of a connection that stays on this host: what takes the place of a
// secret where there is none.
#pragma once

#include <iosfwd>
#include <optional>

#include <sys/types.h>

#include "lockstep/transport/connect/socket.h"

namespace lockstep::transport {

// Whether the other end of a Unix socket runs as our user; true for other sockets.
bool unix_peer_is_our_user(int fd);

// The same for TCP, from the kernel's table of sockets; nothing to say about Unix sockets. To be called once
// the other end has answered: a connection that nobody has accepted yet is nobody's. AuthenticationError when
// another user's process holds the other end, or the table cannot be read. CommError when no process of this
// host and network namespace holds it, as after it was closed.
void require_tcp_peer_is_our_user(int fd);

// The user of the process that holds the socket with these two ends, in a table as /proc/net/tcp and
// /proc/net/tcp6 have it; both ends of one family.
std::optional<uid_t> holder_in_table(std::istream& table, const SocketAddress& local,
                                     const SocketAddress& remote);

}  // namespace lockstep::transport
