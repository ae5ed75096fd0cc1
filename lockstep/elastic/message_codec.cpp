// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/message_codec.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::elastic {
namespace {

using transport::MessageReader;
using transport::MessageWriter;

constexpr std::uint32_t kMagic = 0x4c45'534c;  // "LSEL" in the order of the bytes
// Far beyond any, and far from where adding one would wrap.
constexpr std::uint64_t kMaxGeneration = std::uint64_t{1} << 62;
constexpr std::uint64_t kMaxStep = std::uint64_t{1} << 62;

bool is_printable(char c) {
  return c >= 0x20 && c <= 0x7e;
}

// Steps are written plus one, so that kNoStep is 0.
static_assert(kNoStep == -1);

class BodyWriter {
 public:
  BodyWriter& number(std::uint64_t value) {
    writer_.number(value);
    return *this;
  }
  BodyWriter& step(std::int64_t value) { return number(static_cast<std::uint64_t>(value + 1)); }
  BodyWriter& port(std::uint16_t value) {
    writer_.number(value);
    return *this;
  }
  BodyWriter& flag(bool value) {
    writer_.number(static_cast<std::uint8_t>(value));
    return *this;
  }
  BodyWriter& host(std::string_view value) {
    if (value.size() > kMaxHostBytes || !std::ranges::all_of(value, is_printable)) {
      throw UsageError(fmt::format("the name of a host has at most {} bytes, all printable", kMaxHostBytes));
    }
    writer_.text(value);
    return *this;
  }
  BodyWriter& reason(std::string_view value) {
    std::string shown(value.substr(0, kMaxReasonBytes));
    std::ranges::replace_if(
        shown, [](char c) { return !is_printable(c); }, '?');
    writer_.text(shown);
    return *this;
  }
  BodyWriter& members(const std::vector<MemberId>& values) {
    if (values.size() > kMaxMembers) {
      throw UsageError(fmt::format("a run has at most {} workers", kMaxMembers));
    }
    writer_.number(static_cast<std::uint32_t>(values.size()));
    for (const MemberId member : values) writer_.number(member);
    return *this;
  }

  std::vector<std::byte> framed(MessageType type) const {
    return writer_.framed({kMagic, kProtocolVersion, static_cast<std::uint8_t>(type)});
  }

 private:
  MessageWriter writer_;
};

class BodyReader {
 public:
  BodyReader(ConstBytes body, std::string_view what) : reader_(body, what) {}

  std::uint64_t number() { return reader_.number<std::uint64_t>(); }
  std::uint16_t port() { return reader_.number<std::uint16_t>(); }
  Generation generation() { return limited(kMaxGeneration, "generation"); }
  std::int64_t step_or_none() { return static_cast<std::int64_t>(limited(kMaxStep, "step")) - 1; }
  std::int64_t step() {
    const std::int64_t value = step_or_none();
    if (value == kNoStep) reader_.fail("a step is missing");
    return value;
  }
  bool flag() {
    const auto value = reader_.number<std::uint8_t>();
    if (value > 1) reader_.fail(fmt::format("{} is neither 0 nor 1", value));
    return value == 1;
  }
  std::string host() { return reader_.printable(kMaxHostBytes); }
  std::string reason() { return reader_.printable(kMaxReasonBytes); }
  std::vector<MemberId> members() {
    const auto count = reader_.number<std::uint32_t>();
    if (count > kMaxMembers) {
      reader_.fail(fmt::format("{} members, at most {} are allowed", count, kMaxMembers));
    }
    std::vector<MemberId> values;
    for (std::uint32_t i = 0; i < count; ++i) values.push_back(number());
    if (std::set(values.begin(), values.end()).size() != values.size()) {
      reader_.fail("a member stands twice in a list");
    }
    return values;
  }
  std::int32_t rank_before(std::uint64_t members) {
    const std::uint64_t rank = number();
    if (rank >= members) reader_.fail(fmt::format("rank {} of {} members", rank, members));
    return static_cast<std::int32_t>(rank);
  }

  template <typename Message>
  Message ended(Message message) const {
    reader_.end();
    return message;
  }

 private:
  std::uint64_t limited(std::uint64_t most, const char* what) {
    const std::uint64_t value = number();
    if (value > most) reader_.fail(fmt::format("{} {} is impossible", what, value));
    return value;
  }

  MessageReader reader_;
};

std::vector<std::byte> write(const Join& join) {
  return BodyWriter()
      .number(join.member)
      .host(join.host)
      .number(join.generation)
      .step(join.held)
      .step(join.voted)
      .reason(join.reason)
      .number(join.attempt)
      .number(join.run)
      .framed(MessageType::join);
}

std::vector<std::byte> write(const Begun& begun) {
  return BodyWriter()
      .number(begun.member)
      .number(begun.generation)
      .step(begun.step)
      .framed(MessageType::begun);
}

std::vector<std::byte> write(const Beat& beat) {
  return BodyWriter()
      .number(beat.member)
      .number(beat.generation)
      .step(beat.step)
      .number(beat.progress)
      .flag(beat.waits)
      .framed(MessageType::beat);
}

std::vector<std::byte> write(const Vote& vote) {
  return BodyWriter().number(vote.member).number(vote.generation).step(vote.step).framed(MessageType::vote);
}

std::vector<std::byte> write(const Leave& leave) {
  return BodyWriter().number(leave.member).framed(MessageType::leave);
}

std::vector<std::byte> write(const Place& place) {
  return BodyWriter()
      .number(place.generation)
      .members(place.members)
      .number(static_cast<std::uint64_t>(place.rank))
      .step(place.decided)
      .number(place.attempt)
      .number(place.run)
      .port(place.rendezvous_port)
      .flag(place.only_saves)
      .framed(MessageType::place);
}

std::vector<std::byte> write(const Decision& decision) {
  return BodyWriter()
      .number(decision.generation)
      .step(decision.step)
      .flag(decision.regroup)
      .framed(MessageType::decision);
}

std::vector<std::byte> write(const Abandon& abandon) {
  return BodyWriter().number(abandon.generation).reason(abandon.reason).framed(MessageType::abandon);
}

std::vector<std::byte> write(const Dismiss& dismiss) {
  return BodyWriter().flag(dismiss.is_over).reason(dismiss.reason).framed(MessageType::dismiss);
}

std::vector<std::byte> write(const Brief& brief) {
  return BodyWriter().reason(brief.text).framed(MessageType::brief);
}

std::vector<std::byte> write(const Kill& kill) {
  return BodyWriter().number(kill.member).reason(kill.reason).framed(MessageType::kill);
}

std::vector<std::byte> write(const Over& over) {
  return BodyWriter().flag(over.is_finished).reason(over.reason).framed(MessageType::over);
}

std::vector<std::byte> write(const WindUp& wish) {
  return BodyWriter().reason(wish.reason).framed(MessageType::wind_up);
}

std::vector<std::byte> write(const Ended& ended) {
  return BodyWriter().number(ended.member).reason(ended.reason).framed(MessageType::ended);
}

}  // namespace

std::vector<std::byte> encode(const FromMember& message) {
  return std::visit([](const auto& told) { return write(told); }, message);
}

std::vector<std::byte> encode(const FromCoordinator& message) {
  return std::visit([](const auto& told) { return write(told); }, message);
}

std::vector<std::byte> encode(const ToAgent& message) {
  return std::visit([](const auto& told) { return write(told); }, message);
}

std::vector<std::byte> encode(const FromAgent& message) {
  return std::visit([](const auto& told) { return write(told); }, message);
}

std::size_t max_body_bytes(MessageType type, Sender from) {
  const bool is_from_member = from == Sender::member;
  const bool is_from_coordinator = from == Sender::coordinator;
  switch (type) {
    case MessageType::join:
      return is_from_member ? 6 * 8 + 2 + kMaxHostBytes + 2 + kMaxReasonBytes : 0;
    case MessageType::begun:
    case MessageType::vote:
      return is_from_member ? 3 * 8 : 0;
    case MessageType::beat:
      return is_from_member ? 4 * 8 + 1 : 0;
    case MessageType::leave:
      return is_from_member ? 8 : 0;
    case MessageType::place:
      return is_from_coordinator ? 5 * 8 + 2 + 1 + 4 + 8 * kMaxMembers : 0;
    case MessageType::decision:
      return is_from_coordinator ? 2 * 8 + 1 : 0;
    case MessageType::abandon:
    case MessageType::kill:
      return is_from_coordinator ? 8 + 2 + kMaxReasonBytes : 0;
    case MessageType::dismiss:
      return is_from_coordinator ? 1 + 2 + kMaxReasonBytes : 0;
    case MessageType::brief:
      return is_from_coordinator ? 2 + kMaxReasonBytes : 0;
    case MessageType::over:
      return is_from_coordinator ? 1 + 2 + kMaxReasonBytes : 0;
    case MessageType::wind_up:
      return from == Sender::agent ? 2 + kMaxReasonBytes : 0;
    case MessageType::ended:
      return from == Sender::agent ? 8 + 2 + kMaxReasonBytes : 0;
  }
  return 0;
}

Header decode_header(ConstBytes bytes, Sender from) {
  MessageReader reader(bytes, "elastic header");
  if (reader.number<std::uint32_t>() != kMagic) reader.fail("not a message of an elastic run");
  const auto version = reader.number<std::uint16_t>();
  if (version != kProtocolVersion) {
    reader.fail(fmt::format("version {} of the protocol, expected {}", version, kProtocolVersion));
  }
  const auto type = static_cast<MessageType>(reader.number<std::uint8_t>());
  if (reader.number<std::uint8_t>() != 0) reader.fail("the byte behind the type is not 0");
  const auto body_bytes = reader.number<std::uint32_t>();
  reader.end();
  const std::size_t most = max_body_bytes(type, from);
  if (most == 0) reader.fail(fmt::format("unknown type {}", static_cast<int>(type)));
  if (body_bytes > most) {
    reader.fail(fmt::format("a body of {} bytes, at most {} are allowed", body_bytes, most));
  }
  return {type, body_bytes};
}

// Fields in braces are read in their order.
FromMember decode_from_member(MessageType type, ConstBytes body) {
  BodyReader reader(body, "elastic message of a member");
  switch (type) {
    case MessageType::join:
      return reader.ended(Join{reader.number(), reader.host(), reader.generation(), reader.step_or_none(),
                               reader.step_or_none(), reader.reason(), reader.number(), reader.number()});
    case MessageType::begun:
      return reader.ended(Begun{reader.number(), reader.generation(), reader.step()});
    case MessageType::beat:
      return reader.ended(
          Beat{reader.number(), reader.generation(), reader.step_or_none(), reader.number(), reader.flag()});
    case MessageType::vote:
      return reader.ended(Vote{reader.number(), reader.generation(), reader.step()});
    case MessageType::leave:
      return reader.ended(Leave{reader.number()});
    default:
      throw DataError(fmt::format("a member does not send messages of type {}", static_cast<int>(type)));
  }
}

FromCoordinator decode_from_coordinator(MessageType type, ConstBytes body) {
  BodyReader reader(body, "elastic message of the coordinator");
  switch (type) {
    case MessageType::place: {
      Place place;
      place.generation = reader.generation();
      place.members = reader.members();
      place.rank = reader.rank_before(place.members.size());
      place.decided = reader.step_or_none();
      place.attempt = reader.number();
      place.run = reader.number();
      place.rendezvous_port = reader.port();
      place.only_saves = reader.flag();
      return reader.ended(place);
    }
    case MessageType::decision:
      return reader.ended(Decision{reader.generation(), reader.step(), reader.flag()});
    case MessageType::abandon:
      return reader.ended(Abandon{reader.generation(), reader.reason()});
    case MessageType::dismiss:
      return reader.ended(Dismiss{.is_over = reader.flag(), .reason = reader.reason()});
    default:
      throw DataError(fmt::format("a coordinator does not send messages of type {}", static_cast<int>(type)));
  }
}

ToAgent decode_to_agent(MessageType type, ConstBytes body) {
  BodyReader reader(body, "elastic message to an agent");
  switch (type) {
    case MessageType::brief:
      return reader.ended(Brief{reader.reason()});
    case MessageType::kill:
      return reader.ended(Kill{reader.number(), reader.reason()});
    case MessageType::over:
      return reader.ended(Over{reader.flag(), reader.reason()});
    default:
      throw DataError(fmt::format("an agent is not sent messages of type {}", static_cast<int>(type)));
  }
}

FromAgent decode_from_agent(MessageType type, ConstBytes body) {
  BodyReader reader(body, "elastic message of an agent");
  switch (type) {
    case MessageType::wind_up:
      return reader.ended(WindUp{reader.reason()});
    case MessageType::ended:
      return reader.ended(Ended{reader.number(), reader.reason()});
    default:
      throw DataError(fmt::format("an agent does not send messages of type {}", static_cast<int>(type)));
  }
}

}  // namespace lockstep::elastic
