// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tests/support/ranks.h"

namespace lockstep::test {

// The endpoints of a world over one transport, all in this process: "loopback", "shm", "tcp", or "routed"
// (two hosts of about the same size: shm inside, tcp between them).
Endpoints make_world(const std::string& transport, int world);

}  // namespace lockstep::test
