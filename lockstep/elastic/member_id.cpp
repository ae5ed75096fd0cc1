// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/member_id.h"

#include <cstring>

#include "lockstep/transport/connect/handshake.h"

namespace lockstep::elastic {

MemberId draw_member_id() {
  MemberId id = 0;
  while (id == 0) {
    const transport::Nonce random = transport::random_nonce();
    std::memcpy(&id, random.data(), sizeof(id));
  }
  return id;
}

}  // namespace lockstep::elastic
