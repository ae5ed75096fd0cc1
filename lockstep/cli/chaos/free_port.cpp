// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/chaos/free_port.h"

#include "lockstep/transport/connect/listener.h"

namespace lockstep::cli {

std::uint16_t free_port() {
  return transport::Listener(
             {"127.0.0.1", 0, {}},
             {.me = {.role = "chaos", .rank = 0, .run = "port", .generation = 0}, .secret = {}, .tls = {}})
      .address()
      .port;
}

}  // namespace lockstep::cli
