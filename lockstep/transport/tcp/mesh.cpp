// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/tcp/mesh.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>

#include "lockstep/base/error.h"
#include "lockstep/base/world.h"
#include "lockstep/transport/tcp/frame.h"
#include "lockstep/transport/tcp/limits.h"

namespace lockstep::transport {
namespace {

using tcp::FrameHeader;
using tcp::FrameType;
using tcp::HeaderBytes;

constexpr int kLinksOnLoopback = 1;
constexpr int kLinksBetweenHosts = 2;
// A peer that has proved itself binds its connection at once.
constexpr std::chrono::seconds kBindTime{10};

void check_options(const TcpOptions& options) {
  if (options.world < 1 || options.world > kMaxWorld || options.rank < 0 || options.rank >= options.world) {
    throw UsageError(fmt::format("rank {} does not fit a world of {}", options.rank, options.world));
  }
  if (options.addresses.size() < static_cast<std::size_t>(options.rank)) {
    throw UsageError(fmt::format("rank {} needs the addresses of {} lower ranks, but has {}", options.rank,
                                 options.rank, options.addresses.size()));
  }
  if (options.listener == nullptr && options.rank + 1 < options.world) {
    throw UsageError(
        fmt::format("rank {} of {} needs a listener for the higher ranks", options.rank, options.world));
  }
  if (options.credentials.me.rank != options.rank) {
    throw UsageError(fmt::format("the credentials are those of rank {}, not of rank {}",
                                 options.credentials.me.rank, options.rank));
  }
  if (options.streams_per_peer < 0 || options.streams_per_peer > static_cast<int>(tcp::kMaxLinksPerPeer)) {
    throw UsageError(fmt::format("{} streams per peer are not possible: use 1 to {}, or 0 for the default",
                                 options.streams_per_peer, tcp::kMaxLinksPerPeer));
  }
}

// Collects the connections of this rank until the world is complete.
class MeshBuilder {
 public:
  MeshBuilder(const TcpOptions& options, Deadline deadline)
      : options_(options), deadline_(deadline), links_(options.world) {}

  std::vector<std::vector<std::unique_ptr<Connection>>> build() {
    for (Rank lower = 0; lower < options_.rank; ++lower) dial_all_links(lower);
    for (std::vector<Rank> missing = incomplete(); !missing.empty(); missing = incomplete()) {
      accept_link(missing);
    }
    return std::move(links_);
  }

 private:
  void dial_all_links(Rank peer) {
    const Address& address = options_.addresses[peer];
    int count = options_.streams_per_peer;
    if (count == 0) count = is_loopback(address) ? kLinksOnLoopback : kLinksBetweenHosts;
    for (int link = 0; link < count; ++link) {
      AuthenticatedConnection dialed = dial(address, options_.credentials, deadline_, options_.stop);
      if (dialed.peer.rank != peer) {
        throw UsageError(
            fmt::format("{} is the address of rank {}, not of rank {}: check the list of addresses",
                        address.to_string(), dialed.peer.rank, peer));
      }
      const FrameHeader bind{.type = FrameType::bind,
                             .sequence = static_cast<std::uint64_t>(link),
                             .total = static_cast<std::uint64_t>(count),
                             .offset = static_cast<std::uint64_t>(options_.world)};
      dialed.connection->write_all(tcp::encode(bind, options_.credentials.me.generation), deadline_);
      links_[peer].push_back(std::move(dialed.connection));
    }
  }

  std::vector<Rank> incomplete() const {
    std::vector<Rank> missing;
    for (Rank rank = options_.rank + 1; rank < options_.world; ++rank) {
      const auto& links = links_[rank];
      const bool complete = !links.empty() && std::all_of(links.begin(), links.end(),
                                                          [](const auto& link) { return link != nullptr; });
      if (!complete) missing.push_back(rank);
    }
    return missing;
  }

  AuthenticatedConnection accept_one(const std::vector<Rank>& missing) {
    try {
      return options_.listener->accept(deadline_, options_.stop);
    } catch (const Timeout& timeout) {
      throw Timeout(fmt::format("rank {} waited for rank{} {} in vain: {}", options_.rank,
                                missing.size() == 1 ? "" : "s", fmt::join(missing, ", "), timeout.what()));
    }
  }

  void accept_link(const std::vector<Rank>& missing) {
    AuthenticatedConnection accepted = accept_one(missing);
    const Rank peer = accepted.peer.rank;
    if (peer <= options_.rank || peer >= options_.world) {
      throw CommError(
          fmt::format("rank {} connected to rank {}, which expects ranks {} to {}: check that no "
                      "two processes have the same rank",
                      peer, options_.rank, options_.rank + 1, options_.world - 1));
    }
    const std::optional<FrameHeader> bind = read_bind(*accepted.connection);
    // It went away before it said which link it is; if it still lives it comes again.
    if (!bind) return;
    place(peer, *bind, std::move(accepted.connection));
  }

  std::optional<FrameHeader> read_bind(Connection& connection) {
    HeaderBytes bytes;
    try {
      connection.read_all(bytes,
                          Deadline::after(std::min<std::chrono::nanoseconds>(deadline_.left(), kBindTime)),
                          options_.stop);
    } catch (const Aborted&) {
      throw;
    } catch (const CommError&) {
      return std::nullopt;
    }
    const FrameHeader header = tcp::decode(bytes, options_.credentials.me.generation);
    if (header.type != FrameType::bind) throw DataError("bad frame: a connection must begin with a bind");
    return header;
  }

  void place(Rank peer, const FrameHeader& bind, std::unique_ptr<Connection> connection) {
    if (bind.offset != static_cast<std::uint64_t>(options_.world)) {
      throw CommError(fmt::format("rank {} believes in a world of {}, rank {} in a world of {}", peer,
                                  bind.offset, options_.rank, options_.world));
    }
    auto& links = links_[peer];
    if (links.empty()) links.resize(bind.total);
    if (links.size() != bind.total || links[bind.sequence] != nullptr) {
      throw CommError(fmt::format("two processes claim to be rank {}: check how ranks are assigned", peer));
    }
    links[bind.sequence] = std::move(connection);
  }

  const TcpOptions& options_;
  Deadline deadline_;
  std::vector<std::vector<std::unique_ptr<Connection>>> links_;  // by rank; null where one is still missing
};

}  // namespace

std::vector<std::vector<std::unique_ptr<Connection>>> connect_tcp_mesh(const TcpOptions& options,
                                                                       Deadline deadline) {
  check_options(options);
  return MeshBuilder(options, deadline).build();
}

}  // namespace lockstep::transport
