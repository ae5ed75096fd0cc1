// SPDX-License-Identifier: Apache-2.0
//
// One byte of world size, then a message as it comes from a peer.
#include "lockstep/base/error.h"
#include "lockstep/rendezvous/message.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;
using namespace lockstep::rendezvous;

namespace {

// What was decoded must be encoded to the same bytes: no two messages mean the same.
void require_same(const std::vector<std::byte>& message, ConstBytes body) {
  fuzz::require(message.size() == kHeaderBytes + body.size(), "a message keeps its length");
  fuzz::require(std::equal(body.begin(), body.end(), message.begin() + kHeaderBytes),
                "a message keeps its bytes");
}

void take_body(MessageType type, ConstBytes body, int world) {
  switch (type) {
    case MessageType::arrival:
      return require_same(encode(decode_arrival(body)), body);
    case MessageType::table: {
      const PeerTable table = decode_table(body, world);
      fuzz::require(table.world() == world, "a table has every rank");
      for (Rank rank = 0; rank < world; ++rank) {
        fuzz::require(table.peers[rank].rank == rank, "a table is in order");
      }
      hosts_of(table);
      return require_same(encode(table), body);
    }
    case MessageType::refusal:
      return require_same(encode(decode_refusal(body)), body);
  }
  fuzz::require(false, "a header that was accepted has a known type");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const int world = 1 + input.number<std::uint8_t>() % 8;
  const ConstBytes head = input.take(kHeaderBytes);
  if (head.size() < kHeaderBytes) return 0;
  fuzz::accepts<DataError>([&] {
    const Header header = decode_header(head, world);
    if (header.version != kProtocolVersion) return;
    fuzz::require(header.body_bytes <= max_body_bytes(header.type, world), "a body is within its limit");
    take_body(header.type, input.take(header.body_bytes), world);
  });
  return 0;
}
