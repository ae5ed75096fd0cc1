// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/transport/endpoint.h"

namespace lockstep::transport {

// A name for a run that no other test uses, in this process or another.
std::string unique_run();

// Endpoints over shared memory, all in this process.
std::vector<std::unique_ptr<Endpoint>> make_shm_world(int world);

}  // namespace lockstep::transport
