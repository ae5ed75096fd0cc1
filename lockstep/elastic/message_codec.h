// SPDX-License-Identifier: Apache-2.0
//
// The messages of message.h as bytes, in the form of transport/connect/message_bytes.h. What comes from the
// other side is not trusted: numbers, texts and lists have limits, and each message has one form only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/elastic/message.h"
#include "lockstep/transport/connect/message_bytes.h"

namespace lockstep::elastic {

inline constexpr std::uint16_t kProtocolVersion = 2;
inline constexpr std::size_t kHeaderBytes = transport::kMessageHeaderBytes;
inline constexpr std::size_t kMaxHostBytes = 300;
inline constexpr std::size_t kMaxReasonBytes = 1024;
inline constexpr std::size_t kMaxMembers = 16384;

// The values are on the wire: never renumber.
enum class MessageType : std::uint8_t {
  join = 1,
  begun = 2,
  beat = 3,
  vote = 4,
  leave = 5,
  place = 17,
  decision = 18,
  abandon = 19,
  dismiss = 20,
  kill = 33,
  over = 34,
  brief = 35,
  wind_up = 49,
  ended = 50,
};

enum class Sender { member, coordinator, agent };

struct Header {
  MessageType type{};
  std::uint32_t body_bytes = 0;
};

// With header. Reasons and briefs are cut and lose what cannot be printed; UsageError for a host that is too
// long or cannot be printed and for more than kMaxMembers.
std::vector<std::byte> encode(const FromMember& message);
std::vector<std::byte> encode(const FromCoordinator& message);
std::vector<std::byte> encode(const ToAgent& message);
std::vector<std::byte> encode(const FromAgent& message);

// The most bytes that the body of a message has; 0: this side does not send such a message.
std::size_t max_body_bytes(MessageType type, Sender from);

// DataError when it is not ours, of another version, not of a type that `from` sends, or announces more bytes
// than that type may have.
Header decode_header(ConstBytes header, Sender from);

// The body of a message whose header was decoded; DataError naming what does not fit.
FromMember decode_from_member(MessageType type, ConstBytes body);
FromCoordinator decode_from_coordinator(MessageType type, ConstBytes body);
ToAgent decode_to_agent(MessageType type, ConstBytes body);
FromAgent decode_from_agent(MessageType type, ConstBytes body);

}  // namespace lockstep::elastic
