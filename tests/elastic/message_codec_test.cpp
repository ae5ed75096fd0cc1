// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/message_codec.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "lockstep/base/error.h"

#include "tests/support/error_of.h"

namespace lockstep::elastic {
namespace {

using test::error_of;
using ::testing::HasSubstr;

ConstBytes body_of(const std::vector<std::byte>& message) {
  return ConstBytes(message).subspan(kHeaderBytes);
}

Header header_of(const std::vector<std::byte>& message, Sender from) {
  return decode_header(ConstBytes(message).first(kHeaderBytes), from);
}

FromMember there_and_back(const FromMember& message) {
  const auto bytes = encode(message);
  const Header header = header_of(bytes, Sender::member);
  RC_ASSERT(header.body_bytes == bytes.size() - kHeaderBytes);
  return decode_from_member(header.type, body_of(bytes));
}

FromCoordinator there_and_back(const FromCoordinator& message) {
  const auto bytes = encode(message);
  const Header header = header_of(bytes, Sender::coordinator);
  RC_ASSERT(header.body_bytes == bytes.size() - kHeaderBytes);
  return decode_from_coordinator(header.type, body_of(bytes));
}

ToAgent there_and_back(const ToAgent& message) {
  const auto bytes = encode(message);
  const Header header = header_of(bytes, Sender::coordinator);
  RC_ASSERT(header.body_bytes == bytes.size() - kHeaderBytes);
  return decode_to_agent(header.type, body_of(bytes));
}

FromAgent there_and_back(const FromAgent& message) {
  const auto bytes = encode(message);
  const Header header = header_of(bytes, Sender::agent);
  RC_ASSERT(header.body_bytes == bytes.size() - kHeaderBytes);
  return decode_from_agent(header.type, body_of(bytes));
}

rc::Gen<std::string> texts(std::size_t most) {
  return rc::gen::map(rc::gen::container<std::string>(rc::gen::inRange<char>(0x20, 0x7f)),
                      [most](std::string text) { return text.substr(0, most); });
}
rc::Gen<std::int64_t> steps(std::int64_t least) {
  return rc::gen::inRange(least, std::int64_t{1} << 62);
}
rc::Gen<Generation> generations() {
  return rc::gen::inRange(Generation{0}, Generation{1} << 62);
}
rc::Gen<std::uint64_t> numbers() {
  return rc::gen::arbitrary<std::uint64_t>();
}

std::vector<FromMember> drawn_from_member() {
  const MemberId member = *numbers();
  const Generation generation = *generations();
  return {Join{member, *texts(kMaxHostBytes), generation, *steps(-1), *steps(-1), *texts(kMaxReasonBytes),
               *numbers(), *numbers()},
          Begun{member, generation, *steps(0)},
          Beat{member, generation, *steps(-1), *numbers(), *rc::gen::arbitrary<bool>()},
          Vote{member, generation, *steps(0)}, Leave{member}};
}

std::vector<FromCoordinator> drawn_from_coordinator() {
  const Generation generation = *generations();
  auto members = *rc::gen::nonEmpty(rc::gen::unique<std::vector<MemberId>>(numbers()));
  const int rank = *rc::gen::inRange(0, static_cast<int>(members.size()));
  return {Place{generation, rank, std::move(members), *steps(-1), *numbers(), *numbers(),
                *rc::gen::arbitrary<std::uint16_t>(), *rc::gen::arbitrary<bool>()},
          Decision{generation, *steps(0), *rc::gen::arbitrary<bool>()},
          Abandon{generation, *texts(kMaxReasonBytes)},
          Dismiss{*rc::gen::arbitrary<bool>(), *texts(kMaxReasonBytes)}};
}

std::vector<ToAgent> drawn_to_agent() {
  return {Brief{*texts(kMaxReasonBytes)}, Kill{*numbers(), *texts(kMaxReasonBytes)},
          Over{*rc::gen::arbitrary<bool>(), *texts(kMaxReasonBytes)}};
}

std::vector<FromAgent> drawn_from_agent() {
  return {WindUp{*texts(kMaxReasonBytes)}, Ended{*numbers(), *texts(kMaxReasonBytes)}};
}

TEST(MessageCodecProperty, MessagesSurviveTheWire) {
  EXPECT_TRUE(rc::check("encode and decode are inverse", [] {
    for (const FromMember& message : drawn_from_member()) RC_ASSERT(there_and_back(message) == message);
    for (const FromCoordinator& message : drawn_from_coordinator()) {
      RC_ASSERT(there_and_back(message) == message);
    }
    for (const ToAgent& message : drawn_to_agent()) RC_ASSERT(there_and_back(message) == message);
    for (const FromAgent& message : drawn_from_agent()) RC_ASSERT(there_and_back(message) == message);
  }));
}

TEST(MessageCodecProperty, EveryCutOrExtendedBodyIsRefused) {
  EXPECT_TRUE(rc::check("a body has one length", [] {
    const auto expect_refused = [](auto&& decode, std::vector<std::byte> message) {
      for (std::size_t bytes = 0; bytes < body_of(message).size(); ++bytes) {
        RC_ASSERT_THROWS_AS(decode(body_of(message).first(bytes)), DataError);
      }
      message.push_back(std::byte{0});
      RC_ASSERT_THROWS_AS(decode(body_of(message)), DataError);
    };
    for (const FromMember& drawn : drawn_from_member()) {
      const auto message = encode(drawn);
      const MessageType type = header_of(message, Sender::member).type;
      expect_refused([&](ConstBytes body) { decode_from_member(type, body); }, message);
    }
    for (const FromCoordinator& drawn : drawn_from_coordinator()) {
      const auto message = encode(drawn);
      const MessageType type = header_of(message, Sender::coordinator).type;
      expect_refused([&](ConstBytes body) { decode_from_coordinator(type, body); }, message);
    }
    for (const ToAgent& drawn : drawn_to_agent()) {
      const auto message = encode(drawn);
      const MessageType type = header_of(message, Sender::coordinator).type;
      expect_refused([&](ConstBytes body) { decode_to_agent(type, body); }, message);
    }
    for (const FromAgent& drawn : drawn_from_agent()) {
      const auto message = encode(drawn);
      const MessageType type = header_of(message, Sender::agent).type;
      expect_refused([&](ConstBytes body) { decode_from_agent(type, body); }, message);
    }
  }));
}

TEST(MessageCodec, HeadersThatAreNotOursAreRefused) {
  const auto changed = [](std::size_t at, int value) {
    auto message = encode(FromMember(Leave{1}));
    message[at] = static_cast<std::byte>(value);
    return error_of<DataError>([&] { header_of(message, Sender::member); });
  };
  EXPECT_THAT(changed(0, 'X'), HasSubstr("not a message"));
  EXPECT_THAT(changed(4, 77), HasSubstr("version 77 of the protocol, expected 2"));
  EXPECT_THAT(changed(6, 99), HasSubstr("unknown type 99"));
  EXPECT_THAT(changed(7, 1), HasSubstr("not 0"));
  EXPECT_THAT(changed(8, 9), HasSubstr("a body of 9 bytes, at most 8"));
}

TEST(MessageCodec, EachSideSendsItsOwnMessagesOnly) {
  const auto leave = encode(FromMember(Leave{1}));
  const auto dismiss = encode(FromCoordinator(Dismiss{false, "no"}));
  EXPECT_THROW(header_of(leave, Sender::coordinator), DataError);
  EXPECT_THROW(header_of(dismiss, Sender::member), DataError);
  EXPECT_THROW(decode_from_coordinator(MessageType::leave, body_of(leave)), DataError);
  EXPECT_THROW(decode_from_member(MessageType::dismiss, body_of(dismiss)), DataError);
  const auto wish = encode(WindUp{"now"});
  for (const Sender other : {Sender::member, Sender::coordinator}) {
    EXPECT_THROW(header_of(wish, other), DataError);
  }
  for (const auto& other : {leave, dismiss}) EXPECT_THROW(header_of(other, Sender::agent), DataError);
  EXPECT_THROW(decode_from_member(MessageType::wind_up, body_of(wish)), DataError);
  EXPECT_THROW(decode_from_agent(MessageType::leave, body_of(leave)), DataError);
}

TEST(MessageCodec, ImpossibleContentsAreRefused) {
  const auto refused = [](const FromCoordinator& message) {
    const auto bytes = encode(message);
    return error_of<DataError>(
        [&] { decode_from_coordinator(header_of(bytes, Sender::coordinator).type, body_of(bytes)); });
  };
  EXPECT_THAT(refused(Place{1, 2, {5, 6}}), HasSubstr("rank 2 of 2 members"));
  EXPECT_THAT(refused(Place{1, 0, {5, 5}}), HasSubstr("twice"));
  EXPECT_THAT(refused(Place{UINT64_MAX, 0, {5}}), HasSubstr("generation"));
  EXPECT_THAT(refused(Decision{1, kNoStep, false}), HasSubstr("a step is missing"));
  EXPECT_THAT(refused(Decision{1, -5, false}), HasSubstr("is impossible"));
  auto flagged = encode(FromCoordinator(Decision{1, 1, true}));
  flagged.back() = std::byte{2};
  EXPECT_THAT(error_of<DataError>([&] { decode_from_coordinator(MessageType::decision, body_of(flagged)); }),
              HasSubstr("2 is neither 0 nor 1"));
}

TEST(MessageCodec, ReasonsAreCutAndHostsAreRefused) {
  const std::string reason = "a\n\xc3\xa4" + std::string(2000, 'x');
  const FromCoordinator read = there_and_back(FromCoordinator(Dismiss{true, reason}));
  EXPECT_EQ(std::get<Dismiss>(read).reason, "a???" + std::string(kMaxReasonBytes - 4, 'x'));
  EXPECT_THROW(encode(FromMember(Join{.host = std::string(kMaxHostBytes + 1, 'x')})), UsageError);
  EXPECT_THROW(encode(FromMember(Join{.host = "\x1b[2J"})), UsageError);
  EXPECT_THROW(encode(FromCoordinator(Place{.members = std::vector<MemberId>(kMaxMembers + 1)})), UsageError);
}

TEST(MessageCodec, TheLargestMessagesFit) {
  std::vector<MemberId> members(kMaxMembers);
  for (std::size_t i = 0; i < members.size(); ++i) members[i] = i;
  const FromCoordinator place = Place{1, kMaxMembers - 1, members, 0, 1};
  EXPECT_EQ(there_and_back(place), place);
  const FromMember join =
      Join{1, std::string(kMaxHostBytes, 'h'), 1, 1, 1, std::string(kMaxReasonBytes, 'r'), 1};
  EXPECT_EQ(there_and_back(join), join);
}

}  // namespace
}  // namespace lockstep::elastic
