// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/client.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <variant>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/rendezvous/message.h"

namespace lockstep::rendezvous {
namespace {

std::uint32_t milliseconds_left(Deadline deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left()).count();
  return static_cast<std::uint32_t>(std::min<std::int64_t>(left, std::numeric_limits<std::uint32_t>::max()));
}

using Answer = std::variant<PeerTable, Refusal>;

[[noreturn]] void raise(const Refusal& refusal) {
  switch (refusal.kind) {
    case Refusal::Kind::usage:
      throw UsageError(refusal.text);
    case Refusal::Kind::timeout:
      throw Timeout(refusal.text);
    case Refusal::Kind::aborted:
      throw Aborted(refusal.text);
  }
  throw DataError("a refusal of unknown kind");
}

Answer read_answer(transport::Connection& connection, int world, Deadline deadline,
                   const std::stop_token& stop) {
  std::vector<std::byte> bytes(kHeaderBytes);
  connection.read_all(bytes, deadline, stop);
  const Header header = decode_header(bytes, world);
  if (header.version != kProtocolVersion) {
    throw UsageError(
        fmt::format("the server of the rendezvous speaks version {} of the protocol, this process version "
                    "{}: install the "
                    "same lockstep everywhere",
                    header.version, kProtocolVersion));
  }
  bytes.resize(header.body_bytes);
  connection.read_all(bytes, deadline, stop);
  if (header.type == MessageType::refusal) return decode_refusal(bytes);
  if (header.type != MessageType::table) throw DataError("the rendezvous answered with an arrival");
  return decode_table(bytes, world);
}

Answer talk(const transport::Address& server, Arrival& arrival, const transport::Credentials& credentials,
            Deadline deadline, const std::stop_token& stop) {
  const auto [connection, peer] = transport::dial(server, credentials, deadline, stop);
  arrival.patience_ms = milliseconds_left(deadline);
  connection->write_all(encode(arrival), deadline);
  return read_answer(*connection, arrival.world, deadline, stop);
}

// What the connection raises says nothing about the rendezvous; what the server says is complete.
Answer talk_with_context(const transport::Address& server, Arrival& arrival,
                         const transport::Credentials& credentials, Deadline deadline,
                         const std::stop_token& stop) {
  const auto worded = [&](const CommError& error) {
    return fmt::format("rendezvous of rank {} at {}: {}", arrival.peer.rank, server.to_string(),
                       error.what());
  };
  try {
    return talk(server, arrival, credentials, deadline, stop);
  } catch (const AuthenticationError& error) {
    throw AuthenticationError(worded(error));
  } catch (const PeerLost& error) {
    throw PeerLost(worded(error));
  } catch (const Timeout& error) {
    throw Timeout(worded(error));
  } catch (const Aborted& error) {
    throw Aborted(worded(error));
  }
}

}  // namespace

PeerTable meet(const transport::Address& server, Arrival arrival, const transport::Credentials& credentials,
               Deadline deadline, const std::stop_token& stop) {
  Answer answer = talk_with_context(server, arrival, credentials, deadline, stop);
  if (const auto* refusal = std::get_if<Refusal>(&answer)) raise(*refusal);
  return std::get<PeerTable>(std::move(answer));
}

}  // namespace lockstep::rendezvous
