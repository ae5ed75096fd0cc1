// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/rank.h"

namespace lockstep::rendezvous {

// What a rank tells the others about itself.
struct Peer {
  Rank rank = -1;
  std::uint64_t pid = 0;
  std::string host_id;      // equal ids: same host
  std::string host_name;    // for messages
  std::string tcp_address;  // where its tcp transport listens; empty: it has none

  bool operator==(const Peer&) const = default;
  std::string to_string() const;  // "rank 2 (node7, pid 1234)"
};

// The outcome of a rendezvous, equal on all ranks.
struct PeerTable {
  std::vector<Peer> peers;  // peers[r] is rank r
  std::string nonce;        // 32 hexadecimal digits, fresh for this meeting; fit to be an Identity::run

  int world() const { return static_cast<int>(peers.size()); }
  bool operator==(const PeerTable&) const = default;
};

// The ranks of each host, ascending; hosts in the order of their lowest rank.
std::vector<std::vector<Rank>> hosts_of(const PeerTable& table);

// What a rank says when it arrives. All but the peer must be the same on every rank.
struct Arrival {
  Peer peer;
  int world = 0;
  std::string version;            // of lockstep
  std::string digest;             // of the configuration; may be empty
  std::uint32_t patience_ms = 0;  // how long it is still willing to wait
};

// Who has arrived so far. Pure bookkeeping: the server acts on it.
class Roster {
 public:
  explicit Roster(int world) : arrivals_(static_cast<std::size_t>(world)) {}

  // Takes the arrival, or says why it cannot belong to this run, naming both sides. After a refusal the
  // roster is as before.
  std::optional<std::string> add(const Arrival& arrival);

  // Forgets a rank whose process went away before the meeting was complete.
  void remove(Rank rank);

  bool complete() const { return present_ == arrivals_.size(); }
  int world() const { return static_cast<int>(arrivals_.size()); }
  std::vector<Rank> missing() const;

  // Only when complete.
  PeerTable table(std::string nonce) const;

 private:
  std::optional<std::string> disagreement(const Arrival& newcomer) const;

  std::vector<std::optional<Arrival>> arrivals_;  // by rank
  std::size_t present_ = 0;
};

}  // namespace lockstep::rendezvous
