// SPDX-License-Identifier: Apache-2.0
//
// One byte that says which side it comes from, then a message.
#include <array>

#include "lockstep/base/error.h"
#include "lockstep/elastic/message_codec.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;
using namespace lockstep::elastic;

namespace {

// No two messages mean the same.
void require_same(const std::vector<std::byte>& message, ConstBytes body) {
  fuzz::require(message.size() == kHeaderBytes + body.size(), "a message keeps its length");
  fuzz::require(std::equal(body.begin(), body.end(), message.begin() + kHeaderBytes),
                "a message keeps its bytes");
}

void require_usable(const FromCoordinator& message) {
  if (const Place* place = std::get_if<Place>(&message)) {
    fuzz::require(place->rank >= 0 && static_cast<std::size_t>(place->rank) < place->members.size(),
                  "a place is one of those that there are");
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  constexpr std::array kSenders = {Sender::member, Sender::coordinator, Sender::agent};
  const Sender from = kSenders[input.number<std::uint8_t>() % kSenders.size()];
  const ConstBytes head = input.take(kHeaderBytes);
  fuzz::accepts<DataError>([&] {
    const Header header = decode_header(head, from);
    fuzz::require(header.body_bytes <= max_body_bytes(header.type, from), "a body is within its limit");
    const ConstBytes body = input.take(header.body_bytes);
    if (from == Sender::member) {
      require_same(encode(decode_from_member(header.type, body)), body);
    } else if (from == Sender::agent) {
      require_same(encode(decode_from_agent(header.type, body)), body);
    } else if (header.type == MessageType::kill || header.type == MessageType::over) {
      require_same(encode(decode_to_agent(header.type, body)), body);
    } else {
      const FromCoordinator message = decode_from_coordinator(header.type, body);
      require_usable(message);
      require_same(encode(message), body);
    }
  });
  return 0;
}
