// SPDX-License-Identifier: Apache-2.0
#include "tests/support/worlds.h"

#include "lockstep/base/error.h"
#include "lockstep/transport/loopback/endpoint.h"

namespace lockstep::test {

Endpoints make_world(const std::string& transport, int world) {
  if (transport == "loopback") return transport::make_loopback(world);
  throw InternalError("no such transport: " + transport);
}

}  // namespace lockstep::test
