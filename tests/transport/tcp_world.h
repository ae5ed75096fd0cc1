// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "lockstep/transport/connect/listener.h"
#include "lockstep/transport/endpoint.h"

namespace lockstep::transport {

// All endpoints of a world over 127.0.0.1 in this process.
std::vector<std::unique_ptr<Endpoint>> make_tcp_world(int world, int streams_per_peer,
                                                      std::shared_ptr<TlsContext> tls = nullptr);

// Offers small messages on all streams, far more than the system buffers, and writes until nothing moves.
void fill_socket(Endpoint& from, Rank to, const std::vector<std::byte>& payload);

}  // namespace lockstep::transport
