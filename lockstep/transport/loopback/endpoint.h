// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "lockstep/transport/endpoint.h"

namespace lockstep::transport {

// Ranks as threads of this process: element r is the endpoint of rank r, to be used by one thread each. All
// memory of the process counts as registered. Destroying an endpoint is its death for the others, and wakes
// them; what it had lent or granted must stay valid until they have noticed or abandoned the channel.
std::vector<std::unique_ptr<Endpoint>> make_loopback(int world);

}  // namespace lockstep::transport
