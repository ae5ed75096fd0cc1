// SPDX-License-Identifier: Apache-2.0
//
// Connections over a socket that is already connected. Nobody has proved anything yet.
#pragma once

#include <memory>

#include "lockstep/transport/connect/connection.h"
#include "lockstep/transport/connect/handshake.h"
#include "lockstep/transport/connect/tls.h"

namespace lockstep::transport {

std::unique_ptr<Connection> make_plain_connection(Descriptor socket);

// TLS begins with the first read or write.
std::unique_ptr<Connection> make_tls_connection(Descriptor socket, std::shared_ptr<TlsContext> context,
                                                Side side);

// Plain when `tls` is null or the socket is a Unix socket.
std::unique_ptr<Connection> make_connection(Descriptor socket, const std::shared_ptr<TlsContext>& tls,
                                            Side side);

}  // namespace lockstep::transport
