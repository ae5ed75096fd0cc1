// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "lockstep/base/deadline.h"
#include "lockstep/transport/connect/connection.h"
#include "lockstep/transport/tcp/endpoint.h"

namespace lockstep::transport {

// The connections to every rank in the order of their numbers, by rank; none for ourselves. Raises what
// connect_tcp() does.
std::vector<std::vector<std::unique_ptr<Connection>>> connect_tcp_mesh(const TcpOptions& options,
                                                                       Deadline deadline);

}  // namespace lockstep::transport
