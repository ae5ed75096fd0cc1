// SPDX-License-Identifier: Apache-2.0
//
// The messages of a rendezvous, over authenticated connections, in the form of
// transport/connect/message_bytes.h. A rank sends an Arrival; the server answers with the table or a refusal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/rendezvous/table.h"
#include "lockstep/transport/connect/message_bytes.h"

namespace lockstep::rendezvous {

inline constexpr std::uint16_t kProtocolVersion = 2;
inline constexpr std::size_t kHeaderBytes = transport::kMessageHeaderBytes;

// The values are on the wire: never renumber.
enum class MessageType : std::uint8_t { arrival = 1, table = 2, refusal = 3 };

// Why the ranks do not meet. The kind decides which error every rank raises.
struct Refusal {
  enum class Kind : std::uint8_t { usage = 1, timeout = 2, aborted = 3 };
  Kind kind = Kind::usage;
  std::string text;
};

struct Header {
  std::uint16_t version = 0;
  MessageType type{};
  std::uint32_t body_bytes = 0;
};

// The most bytes a body of this type may have in a world of this size.
std::size_t max_body_bytes(MessageType type, int world);

// Texts that exceed the limits of the format are cut (refusals) or a UsageError (what a rank tells about
// itself).
std::vector<std::byte> encode(const Arrival& arrival);
std::vector<std::byte> encode(const PeerTable& table);
std::vector<std::byte> encode(const Refusal& refusal);

// DataError when the magic or the type is not ours or the length exceeds the limit of the type; versions are
// left to the caller, who can say more about it.
Header decode_header(ConstBytes header, int world);

// DataError naming what does not fit: too short, too long, bytes left over, a rank outside the world.
Arrival decode_arrival(ConstBytes body);
PeerTable decode_table(ConstBytes body, int world);
Refusal decode_refusal(ConstBytes body);

}  // namespace lockstep::rendezvous
