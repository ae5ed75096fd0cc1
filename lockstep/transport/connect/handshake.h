// SPDX-License-Identifier: Apache-2.0
//
// Mutual proof of the secret, before any other byte of a connection is interpreted. Both sides send a fresh
// nonce and an HMAC-SHA256 over both nonces, the side that speaks, and both identities; so a proof can be
// neither replayed (nonces), nor reflected (side), nor moved to another role, rank, run or generation.
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
// handshake needs leaves the rest unread. The peer must have the same role, run and generation.
class Handshake {
 public:
  Handshake(Side side, const Identity& me, const Secret& secret, const Nonce& fresh_nonce);

  // Bytes to send now; empties the queue.
  std::vector<std::byte> take_output();

  // Takes received bytes; returns how many were used. Throws AuthenticationError (wrong magic or version,
  // oversized, wrong role, run or generation, wrong proof, own nonce come back); the connection must then be
  // closed.
  std::size_t feed(ConstBytes received);

  // The peer, once it has proved itself.
  const std::optional<Identity>& peer() const { return peer_; }
  bool done() const { return peer_.has_value(); }

  // The most bytes that one side of a handshake can have to read.
  static constexpr std::size_t kMaxBytes = 512;

 private:
  enum class State : std::uint8_t { hello, proof, done };

  std::vector<std::byte> hello() const;
  std::array<std::byte, 32> proof_of(Side speaker) const;

  Side side_;
  Identity me_;
  Secret secret_;
  Nonce nonce_;
  State state_ = State::hello;
  Identity claimed_;
  Nonce peer_nonce_{};
  std::vector<std::byte> input_;
  std::vector<std::byte> output_;
  std::optional<Identity> peer_;
};

Nonce random_nonce();

}  // namespace lockstep::transport
