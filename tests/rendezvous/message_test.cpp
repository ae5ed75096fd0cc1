// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/message.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "lockstep/base/error.h"

namespace lockstep::rendezvous {
namespace {

Peer peer_of(Rank rank) {
  return {
      .rank = rank, .pid = 1ull << 40, .host_id = "id", .host_name = "node", .tcp_address = "[fe80::1]:5"};
}

Arrival some_arrival() {
  return {.peer = peer_of(3), .world = 5, .version = "1.2.3", .digest = "abc", .patience_ms = 4000};
}

PeerTable some_table(int world) {
  PeerTable table;
  for (Rank rank = 0; rank < world; ++rank) table.peers.push_back(peer_of(rank));
  table.nonce = std::string(32, 'f');
  return table;
}

ConstBytes body_of(const std::vector<std::byte>& message) {
  return ConstBytes(message).subspan(kHeaderBytes);
}

Header header_of(const std::vector<std::byte>& message, int world) {
  return decode_header(ConstBytes(message).first(kHeaderBytes), world);
}

TEST(Message, ArrivalSurvivesTheWire) {
  const auto message = encode(some_arrival());
  const Header header = header_of(message, 5);
  EXPECT_EQ(header.type, MessageType::arrival);
  EXPECT_EQ(header.body_bytes, message.size() - kHeaderBytes);
  const Arrival read = decode_arrival(body_of(message));
  EXPECT_EQ(read.peer, some_arrival().peer);
  EXPECT_EQ(read.world, 5);
  EXPECT_EQ(read.version, "1.2.3");
  EXPECT_EQ(read.digest, "abc");
  EXPECT_EQ(read.patience_ms, 4000u);
}

TEST(Message, TableAndRefusalSurviveTheWire) {
  const PeerTable table = some_table(7);
  const auto message = encode(table);
  EXPECT_EQ(header_of(message, 7).type, MessageType::table);
  EXPECT_EQ(decode_table(body_of(message), 7), table);
  const auto refusal = encode(Refusal{Refusal::Kind::timeout, "no"});
  EXPECT_EQ(header_of(refusal, 7).type, MessageType::refusal);
  EXPECT_EQ(decode_refusal(body_of(refusal)).text, "no");
  EXPECT_EQ(decode_refusal(body_of(refusal)).kind, Refusal::Kind::timeout);
}

TEST(Message, LongRefusalsAreCutNotRefused) {
  const auto message = encode(Refusal{Refusal::Kind::usage, std::string(100'000, 'x')});
  EXPECT_NO_THROW(header_of(message, 1));
  EXPECT_EQ(decode_refusal(body_of(message)).text.size(), 1024u);
}

TEST(Message, LargestMessagesFitTheirLimits) {
  Peer peer = peer_of(0);
  for (std::string* text : {&peer.host_id, &peer.host_name, &peer.tcp_address}) {
    *text = std::string(300, 'x');
  }
  const auto table = encode(PeerTable{{peer}, std::string(64, 'f')});
  EXPECT_NO_THROW(header_of(table, 1));
  Arrival arrival = some_arrival();
  arrival.peer = peer;
  arrival.digest = std::string(300, 'd');
  EXPECT_NO_THROW(header_of(encode(arrival), 1));
  arrival.digest += 'd';
  EXPECT_THROW(encode(arrival), UsageError);
  peer.host_id += 'x';
  arrival = some_arrival();
  arrival.peer = peer;
  EXPECT_THROW(encode(arrival), UsageError);
}

TEST(Message, LengthIsCheckedBeforeTheBodyIsRead) {
  auto message = encode(some_arrival());
  message[8] = message[9] = message[10] = message[11] = std::byte{0xff};
  EXPECT_THROW(header_of(message, 5), DataError);
}

TEST(Message, ForeignHeadersAreRefused) {
  auto magic = encode(some_arrival());
  magic[0] = std::byte{'G'};
  EXPECT_THROW(header_of(magic, 5), DataError);
  auto type = encode(some_arrival());
  type[6] = std::byte{9};
  EXPECT_THROW(header_of(type, 5), DataError);
}

TEST(Message, AnotherVersionIsLeftToTheCaller) {
  auto message = encode(some_arrival());
  message[4] = std::byte{77};
  EXPECT_EQ(header_of(message, 5).version, 77);
}

TEST(Message, TableMustFitTheWorld) {
  const auto message = encode(some_table(3));
  EXPECT_THROW(decode_table(body_of(message), 4), DataError);
  PeerTable swapped = some_table(2);
  std::swap(swapped.peers[0], swapped.peers[1]);
  EXPECT_THROW(decode_table(body_of(encode(swapped)), 2), DataError);
}

TEST(Message, UnprintableTextsAreRefused) {
  Arrival arrival = some_arrival();
  arrival.peer.host_name = "a\x1b[2J";
  EXPECT_THROW(decode_arrival(body_of(encode(arrival))), DataError);
}

TEST(MessageProperty, EveryCutOrExtendedBodyIsRefused) {
  const auto message = encode(some_arrival());
  const ConstBytes body = body_of(message);
  for (std::size_t bytes = 0; bytes < body.size(); ++bytes) {
    EXPECT_THROW(decode_arrival(body.first(bytes)), DataError) << bytes;
  }
  auto longer = message;
  longer.push_back(std::byte{0});
  EXPECT_THROW(decode_arrival(body_of(longer)), DataError);
}

TEST(MessageProperty, AnyBytesDecodeOrRaiseDataError) {
  EXPECT_TRUE(rc::check("decoding never does anything else", [] {
    const auto raw = *rc::gen::arbitrary<std::vector<std::uint8_t>>();
    const ConstBytes bytes = std::as_bytes(std::span(raw));
    const auto survives = [](auto&& decode) {
      try {
        decode();
      } catch (const DataError&) {
      }
    };
    survives([&] { decode_arrival(bytes); });
    survives([&] { decode_table(bytes, 3); });
    survives([&] { decode_refusal(bytes); });
    survives([&] { decode_header(bytes, 3); });
  }));
}

}  // namespace
}  // namespace lockstep::rendezvous
