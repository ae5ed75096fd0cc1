// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "lockstep/transport/connect/listener.h"
#include "lockstep/transport/endpoint.h"

namespace lockstep::transport {

// All endpoints of a world over 127.0.0.1 in this process.
std::vector<std::unique_ptr<Endpoint>> make_tcp_world(int world, int streams_per_peer,
                                                      std::shared_ptr<TlsContext> tls = nullptr);

}  // namespace lockstep::transport
