// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/support/ranks.h"

namespace lockstep::test {

// The endpoints of a world over one transport, all in this process: "loopback", "shm", "tcp", or "routed"
// (two hosts of about the same size: shm inside, tcp between them).
Endpoints make_world(const std::string& transport, int world);

// By rank: the host it is on in a "routed" world.
std::vector<int> hosts_of_routed(int world);

}  // namespace lockstep::test
