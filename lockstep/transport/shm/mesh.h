// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "lockstep/transport/connect/connection.h"
#include "lockstep/transport/shm/endpoint.h"

namespace lockstep::transport {

// An authenticated Unix socket to every other rank, by rank; null for ourselves. Of two ranks the lower one
// listens.
std::vector<std::unique_ptr<Connection>> connect_shm_mesh(const ShmOptions& options);

}  // namespace lockstep::transport
