// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/message.h"

#include <array>
#include <concepts>
#include <string_view>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/rendezvous/text.h"
#include "lockstep/transport/connect/wire.h"

namespace lockstep::rendezvous {
namespace {

constexpr std::uint32_t kMagic = 0x5652'534c;  // "LSRV" in the order of the bytes
constexpr std::size_t kMaxText = 300;          // of any text in an Arrival or a Peer
constexpr std::size_t kMaxPeerBytes = 4 + 8 + 4 * (2 + kMaxText);
constexpr std::size_t kMaxRefusalText = 1024;
constexpr std::size_t kMaxNonceText = 64;

class Writer {
 public:
  template <std::unsigned_integral T>
  Writer& number(T value) {
    std::array<std::byte, sizeof(T)> bytes;
    transport::WireWriter(bytes).put(value);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }

  Writer& text(std::string_view value) {
    number(static_cast<std::uint16_t>(value.size()));
    const ConstBytes bytes = std::as_bytes(std::span(value));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }

  std::vector<std::byte> framed(MessageType type) const {
    Writer frame;
    frame.number(kMagic).number(kProtocolVersion);
    frame.number(static_cast<std::uint8_t>(type)).number(std::uint8_t{0});
    frame.number(static_cast<std::uint32_t>(bytes_.size()));
    frame.bytes_.insert(frame.bytes_.end(), bytes_.begin(), bytes_.end());
    return std::move(frame.bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  Reader(ConstBytes bytes, std::string_view what) : bytes_(bytes), what_(what) {}

  template <std::unsigned_integral T>
  T number() {
    return transport::WireReader(take(sizeof(T))).get<T>();
  }

  std::string text(std::size_t most) {
    const auto length = number<std::uint16_t>();
    if (length > most) fail(fmt::format("a text of {} bytes, at most {} are allowed", length, most));
    const ConstBytes bytes = take(length);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  void end() const {
    if (at_ != bytes_.size()) fail(fmt::format("{} bytes left over", bytes_.size() - at_));
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw DataError(fmt::format("rendezvous {} at byte {}: {}", what_, at_, why));
  }

 private:
  ConstBytes take(std::size_t count) {
    if (count > bytes_.size() - at_) {
      fail(fmt::format("{} bytes expected, {} left", count, bytes_.size() - at_));
    }
    at_ += count;
    return bytes_.subspan(at_ - count, count);
  }

  ConstBytes bytes_;
  std::string_view what_;
  std::size_t at_ = 0;
};

void write_peer(Writer& writer, const Peer& peer) {
  writer.number(static_cast<std::uint32_t>(peer.rank)).number(peer.pid);
  for (const std::string& text : {peer.host_id, peer.host_name, peer.tcp_address, peer.shm_address}) {
    if (text.size() > kMaxText) {
      throw UsageError(fmt::format("{} is longer than {} characters: choose a shorter name or address",
                                   quote(text), kMaxText));
    }
    writer.text(text);
  }
}

// A text that will be shown to people or used as a name: printable only.
std::string printable(Reader& reader, std::size_t most) {
  std::string text = reader.text(most);
  for (char c : text) {
    if (c < 0x20 || c > 0x7e) reader.fail("a text with unprintable bytes");
  }
  return text;
}

Peer read_peer(Reader& reader) {
  Peer peer;
  const auto rank = reader.number<std::uint32_t>();
  if (rank > INT32_MAX) reader.fail(fmt::format("rank {} is impossible", rank));
  peer.rank = static_cast<Rank>(rank);
  peer.pid = reader.number<std::uint64_t>();
  for (std::string* text : {&peer.host_id, &peer.host_name, &peer.tcp_address, &peer.shm_address}) {
    *text = printable(reader, kMaxText);
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
  Writer writer;
  write_peer(writer, arrival.peer);
  writer.number(static_cast<std::uint32_t>(arrival.world)).number(arrival.patience_ms);
  writer.text(arrival.version).text(arrival.digest);
  return writer.framed(MessageType::arrival);
}

std::vector<std::byte> encode(const PeerTable& table) {
  Writer writer;
  writer.text(table.nonce).number(static_cast<std::uint32_t>(table.peers.size()));
  for (const Peer& peer : table.peers) write_peer(writer, peer);
  return writer.framed(MessageType::table);
}

std::vector<std::byte> encode(const Refusal& refusal) {
  Writer writer;
  writer.number(static_cast<std::uint8_t>(refusal.kind));
  writer.text(std::string_view(refusal.text).substr(0, kMaxRefusalText));
  return writer.framed(MessageType::refusal);
}

Header decode_header(ConstBytes bytes, int world) {
  Reader reader(bytes, "header");
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
  Reader reader(body, "arrival");
  Arrival arrival;
  arrival.peer = read_peer(reader);
  const auto world = reader.number<std::uint32_t>();
  if (world > INT32_MAX) reader.fail(fmt::format("world {} is impossible", world));
  arrival.world = static_cast<int>(world);
  arrival.patience_ms = reader.number<std::uint32_t>();
  arrival.version = printable(reader, kMaxText);
  arrival.digest = printable(reader, kMaxText);
  reader.end();
  return arrival;
}

PeerTable decode_table(ConstBytes body, int world) {
  Reader reader(body, "table");
  PeerTable table;
  table.nonce = printable(reader, kMaxNonceText);
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
  Reader reader(body, "refusal");
  const auto kind = reader.number<std::uint8_t>();
  if (kind < 1 || kind > 3) reader.fail(fmt::format("unknown kind {}", kind));
  Refusal refusal{static_cast<Refusal::Kind>(kind), printable(reader, kMaxRefusalText)};
  reader.end();
  return refusal;
}

}  // namespace lockstep::rendezvous
