// SPDX-License-Identifier: Apache-2.0
//
// Mutual proof of the secret, before any other byte of a connection is interpreted. Both sides send a fresh
// nonce and an HMAC-SHA256 over both nonces, the side that speaks, and both identities; so a proof can be
// neither replayed (nonces), nor reflected (side), nor moved to another role, rank, run or generation.
//
//   dialer                                   listener
//   hello: magic, identity, nonce     ->
//                                     <-     hello
//   proof                             ->
//                                     <-     verdict (accepted or refused), and if accepted its own proof
//
// The listener computes nothing from the secret that a stranger could see: it proves itself last. The verdict
// tells a dialer with the wrong secret from one whose connection broke.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/base/rank.h"
#include "lockstep/transport/connect/secret.h"

namespace lockstep::transport {

enum class Side : std::uint8_t { dialer = 0, listener = 1 };

// Who speaks, as bound into the proof.
struct Identity {
  std::string role;  // "rendezvous", "tcp", "shm"; at most 32 bytes of [a-z_]
  Rank rank = -1;    // -1: none yet
  std::string run;   // at most 64 bytes of [A-Za-z0-9._-]
  std::uint64_t generation = 0;

  bool operator==(const Identity&) const = default;
};

inline constexpr std::size_t kNonceBytes = 32;
using Nonce = std::array<std::byte, kNonceBytes>;

// One side of the handshake as a state machine over bytes, whatever carries them. Feeding more than the
// handshake needs leaves the rest unread. The peer must have the same role, run and generation. UsageError if
// `me` breaks the limits of Identity.
class Handshake {
 public:
  Handshake(Side side, const Identity& me, const Secret& secret, const Nonce& fresh_nonce);

  // Bytes to send now; empties the queue.
  std::vector<std::byte> take_output();

  // Takes received bytes; returns how many were used. Throws AuthenticationError (wrong magic or version,
  // malformed, wrong role, run or generation, wrong proof, own nonce come back); what take_output() then
  // gives tells the peer why and may be sent before the connection is closed.
  std::size_t feed(ConstBytes received);

  // How many bytes the message under way still needs (0 when done): reading no more leaves what follows the
  // handshake in the connection.
  std::size_t wanted() const;

  // The peer, once it has proved itself.
  const std::optional<Identity>& peer() const { return peer_; }
  bool done() const { return peer_.has_value(); }

  // The most bytes that one side of a handshake can have to read.
  static constexpr std::size_t kMaxBytes = 512;

 private:
  enum class State : std::uint8_t { hello, proof, verdict, done };

  void take_hello();
  void take_proof();
  void take_verdict();
  void send_hello();
  std::array<std::byte, 32> proof_of(Side speaker) const;

  Side side_;
  Identity me_;
  Secret secret_;
  State state_ = State::hello;
  std::vector<std::byte> my_hello_;
  std::vector<std::byte> peer_hello_;
  Identity claimed_;
  std::vector<std::byte> input_;
  std::vector<std::byte> output_;
  std::optional<Identity> peer_;
};

Nonce random_nonce();

}  // namespace lockstep::transport
