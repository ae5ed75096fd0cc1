// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/guest.h"

#include <algorithm>
#include <array>
#include <chrono>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::rendezvous {
namespace {

using transport::Connection;

// The answer must arrive before the rank stops waiting: a fifth of its patience, at most half a second.
Clock::time_point answer_by(std::uint32_t patience_ms) {
  const std::chrono::milliseconds patience(patience_ms);
  return Clock::now() + patience - std::min(patience / 5, std::chrono::milliseconds(500));
}

}  // namespace

Guest::Guest(transport::AuthenticatedConnection connection, int world)
    : connection_(std::move(connection.connection)),
      rank_(connection.peer.rank),
      world_(world),
      input_(kHeaderBytes) {}

void Guest::pump_input() {
  while (read_some()) {
    if (arrival_) throw DataError(fmt::format("rank {} sent bytes after its arrival", rank_));
    if (filled_ < input_.size()) continue;
    if (!header_) {
      take_header();
    } else {
      take_body();
    }
  }
}

bool Guest::read_some() {
  // Once the arrival is complete, reading only serves to notice that the connection has ended.
  std::array<std::byte, 1> probe;
  const Bytes into = arrival_ ? Bytes(probe) : Bytes(input_).subspan(filled_);
  const std::ptrdiff_t got = connection_->try_read(into);
  if (got == Connection::kClosed) throw PeerLost(fmt::format("rank {} left the rendezvous", rank_));
  if (got == Connection::kWouldBlock) return false;
  filled_ += static_cast<std::size_t>(got);
  return true;
}

void Guest::take_header() {
  header_ = decode_header(input_, world_);
  if (header_->version != kProtocolVersion) {
    throw UsageError(fmt::format(
        "rank {} speaks version {} of the rendezvous protocol, but its server speaks version {}: install the "
        "same lockstep everywhere",
        rank_, header_->version, kProtocolVersion));
  }
  if (header_->type != MessageType::arrival) {
    throw DataError(fmt::format("rank {} sent another message than its arrival", rank_));
  }
  input_.assign(header_->body_bytes, std::byte{});
  filled_ = 0;
}

void Guest::take_body() {
  Arrival arrival = decode_arrival(input_);
  if (arrival.peer.rank != rank_) {
    throw DataError(fmt::format("rank {} calls itself rank {}", rank_, arrival.peer.rank));
  }
  gives_up_ = answer_by(arrival.patience_ms);
  arrival_ = std::move(arrival);
}

void Guest::answer(std::vector<std::byte> message) {
  output_ = std::move(message);
  sent_ = 0;
}

bool Guest::pump_output() {
  while (sent_ < output_.size()) {
    const ConstBytes rest = ConstBytes(output_).subspan(sent_);
    const std::ptrdiff_t put = connection_->try_write(std::span(&rest, 1));
    if (put == Connection::kWouldBlock) return false;
    if (put == Connection::kClosed) return true;
    sent_ += static_cast<std::size_t>(put);
  }
  return true;
}

}  // namespace lockstep::rendezvous
