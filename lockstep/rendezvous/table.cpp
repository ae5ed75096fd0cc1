// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/table.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::rendezvous {

std::string Peer::to_string() const {
  return fmt::format("rank {} ({}, pid {})", rank, host_name, pid);
}

std::vector<std::vector<Rank>> hosts_of(const PeerTable& table) {
  std::vector<std::vector<Rank>> hosts;
  std::map<std::string, std::size_t> index_of;
  for (const Peer& peer : table.peers) {
    const auto [entry, is_new] = index_of.emplace(peer.host_id, hosts.size());
    if (is_new) hosts.emplace_back();
    hosts[entry->second].push_back(peer.rank);
  }
  return hosts;
}

std::optional<std::string> Roster::add(const Arrival& arrival) {
  const Peer& peer = arrival.peer;
  if (arrival.world != world()) {
    return fmt::format(
        "{} was started for a world of {}, but this run has {} ranks: start all ranks with the "
        "same world size",
        peer.to_string(), arrival.world, world());
  }
  if (peer.rank < 0 || peer.rank >= world()) {
    return fmt::format("{} is outside the world of {}", peer.to_string(), world());
  }
  if (auto why = disagreement(arrival)) return why;
  auto& place = arrivals_[static_cast<std::size_t>(peer.rank)];
  if (place) {
    return fmt::format("two processes claim rank {}: {} pid {} and {} pid {}; give each process its own rank",
                       peer.rank, place->peer.host_name, place->peer.pid, peer.host_name, peer.pid);
  }
  place = arrival;
  ++present_;
  return std::nullopt;
}

std::optional<std::string> Roster::disagreement(const Arrival& newcomer) const {
  const auto other = std::find_if(arrivals_.begin(), arrivals_.end(), [](const auto& a) { return !!a; });
  if (other == arrivals_.end()) return std::nullopt;
  const Arrival& first = **other;
  if (newcomer.version != first.version) {
    return fmt::format("{} runs lockstep {}, but {} runs {}: install the same version everywhere",
                       newcomer.peer.to_string(), newcomer.version, first.peer.to_string(), first.version);
  }
  if (newcomer.digest != first.digest) {
    return fmt::format(
        "{} has configuration digest '{}', but {} has '{}': give all ranks the same "
        "configuration",
        newcomer.peer.to_string(), newcomer.digest, first.peer.to_string(), first.digest);
  }
  return std::nullopt;
}

void Roster::remove(Rank rank) {
  LOCKSTEP_CHECK(arrivals_[static_cast<std::size_t>(rank)].has_value());
  arrivals_[static_cast<std::size_t>(rank)].reset();
  --present_;
}

std::vector<Rank> Roster::missing() const {
  std::vector<Rank> result;
  for (Rank rank = 0; rank < world(); ++rank) {
    if (!arrivals_[static_cast<std::size_t>(rank)]) result.push_back(rank);
  }
  return result;
}

PeerTable Roster::table(std::string nonce) const {
  LOCKSTEP_CHECK(complete());
  PeerTable result;
  for (const auto& arrival : arrivals_) result.peers.push_back(arrival->peer);
  result.nonce = std::move(nonce);
  return result;
}

}  // namespace lockstep::rendezvous
