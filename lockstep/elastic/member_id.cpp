// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/member_id.h"

#include <cstring>

#include "lockstep/transport/connect/handshake.h"

namespace lockstep::elastic {

std::uint64_t draw_id() {
  std::uint64_t id = 0;
  while (id == 0) {
    const transport::Nonce random = transport::random_nonce();
    std::memcpy(&id, random.data(), sizeof(id));
  }
  return id;
}

}  // namespace lockstep::elastic
