// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/message.h"

#include <string_view>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/rendezvous/text.h"
#include "lockstep/transport/connect/message_bytes.h"

namespace lockstep::rendezvous {
namespace {

constexpr std::uint32_t kMagic = 0x5652'534c;  // "LSRV" in the order of the bytes
constexpr std::size_t kMaxText = 300;          // of any text in an Arrival or a Peer
constexpr std::size_t kMaxPeerBytes = 4 + 8 + 3 * (2 + kMaxText);
constexpr std::size_t kMaxRefusalText = 1024;
constexpr std::size_t kMaxNonceText = 64;

using transport::MessageReader;
using transport::MessageWriter;

std::vector<std::byte> framed(const MessageWriter& writer, MessageType type) {
  return writer.framed({kMagic, kProtocolVersion, static_cast<std::uint8_t>(type)});
}

void write_peer(MessageWriter& writer, const Peer& peer) {
  writer.number(static_cast<std::uint32_t>(peer.rank)).number(peer.pid);
  for (const std::string& text : {peer.host_id, peer.host_name, peer.tcp_address}) {
    if (text.size() > kMaxText) {
      throw UsageError(fmt::format("{} is longer than {} characters: choose a shorter name or address",
                                   quote(text), kMaxText));
    }
    writer.text(text);
  }
}

Peer read_peer(MessageReader& reader) {
  Peer peer;
  const auto rank = reader.number<std::uint32_t>();
  if (rank > INT32_MAX) reader.fail(fmt::format("rank {} is impossible", rank));
  peer.rank = static_cast<Rank>(rank);
  peer.pid = reader.number<std::uint64_t>();
  for (std::string* text : {&peer.host_id, &peer.host_name, &peer.tcp_address}) {
    *text = reader.printable(kMaxText);
  }
  return peer;
}

}  // namespace

std::size_t max_body_bytes(MessageType type, int world) {
  switch (type) {
    case MessageType::arrival:
      return kMaxPeerBytes + 4 + 4 + 2 * (2 + kMaxText);
    case MessageType::table:
      return 2 + kMaxNonceText + 4 + static_cast<std::size_t>(world) * kMaxPeerBytes;
    case MessageType::refusal:
      return 1 + 2 + kMaxRefusalText;
  }
  return 0;
}

std::vector<std::byte> encode(const Arrival& arrival) {
  if (arrival.digest.size() > kMaxText || arrival.version.size() > kMaxText) {
    throw UsageError(fmt::format("a configuration digest has at most {} characters", kMaxText));
  }
  MessageWriter writer;
  write_peer(writer, arrival.peer);
  writer.number(static_cast<std::uint32_t>(arrival.world)).number(arrival.patience_ms);
  writer.text(arrival.version).text(arrival.digest);
  return framed(writer, MessageType::arrival);
}

std::vector<std::byte> encode(const PeerTable& table) {
  MessageWriter writer;
  writer.text(table.nonce).number(static_cast<std::uint32_t>(table.peers.size()));
  for (const Peer& peer : table.peers) write_peer(writer, peer);
  return framed(writer, MessageType::table);
}

std::vector<std::byte> encode(const Refusal& refusal) {
  MessageWriter writer;
  writer.number(static_cast<std::uint8_t>(refusal.kind));
  writer.text(std::string_view(refusal.text).substr(0, kMaxRefusalText));
  return framed(writer, MessageType::refusal);
}

Header decode_header(ConstBytes bytes, int world) {
  MessageReader reader(bytes, "rendezvous header");
  if (reader.number<std::uint32_t>() != kMagic) reader.fail("not a rendezvous message");
  Header header;
  header.version = reader.number<std::uint16_t>();
  header.type = static_cast<MessageType>(reader.number<std::uint8_t>());
  reader.number<std::uint8_t>();
  header.body_bytes = reader.number<std::uint32_t>();
  reader.end();
  if (header.version != kProtocolVersion) return header;
  const std::size_t most = max_body_bytes(header.type, world);
  if (most == 0) reader.fail(fmt::format("unknown type {}", static_cast<int>(header.type)));
  if (header.body_bytes > most) {
    reader.fail(fmt::format("a body of {} bytes, at most {} are allowed", header.body_bytes, most));
  }
  return header;
}

Arrival decode_arrival(ConstBytes body) {
  MessageReader reader(body, "rendezvous arrival");
  Arrival arrival;
  arrival.peer = read_peer(reader);
  const auto world = reader.number<std::uint32_t>();
  if (world > INT32_MAX) reader.fail(fmt::format("world {} is impossible", world));
  arrival.world = static_cast<int>(world);
  arrival.patience_ms = reader.number<std::uint32_t>();
  arrival.version = reader.printable(kMaxText);
  arrival.digest = reader.printable(kMaxText);
  reader.end();
  return arrival;
}

PeerTable decode_table(ConstBytes body, int world) {
  MessageReader reader(body, "rendezvous table");
  PeerTable table;
  table.nonce = reader.printable(kMaxNonceText);
  const auto count = reader.number<std::uint32_t>();
  if (count != static_cast<std::uint32_t>(world)) {
    reader.fail(fmt::format("{} peers for a world of {}", count, world));
  }
  for (Rank rank = 0; rank < world; ++rank) {
    table.peers.push_back(read_peer(reader));
    if (table.peers.back().rank != rank) {
      reader.fail(fmt::format("rank {} in the place of rank {}", table.peers.back().rank, rank));
    }
  }
  reader.end();
  return table;
}

Refusal decode_refusal(ConstBytes body) {
  MessageReader reader(body, "rendezvous refusal");
  const auto kind = reader.number<std::uint8_t>();
  if (kind < 1 || kind > 3) reader.fail(fmt::format("unknown kind {}", kind));
  Refusal refusal{static_cast<Refusal::Kind>(kind), reader.printable(kMaxRefusalText)};
  reader.end();
  return refusal;
}

}  // namespace lockstep::rendezvous
