// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/transport/endpoint.h"
#include "lockstep/transport/memory/bell.h"
#include "lockstep/transport/memory/channel.h"
#include "lockstep/transport/memory/notices.h"

namespace lockstep::transport {

// What endpoints over shared memory have in common, wherever that memory is: channels, notices, sleeping. The
// derived class owns the memory and must call add_peer() for every peer before anything else is used.
class MemoryEndpoint : public Endpoint {
 public:
  Rank rank() const final { return rank_; }
  int world() const final { return world_; }
  Channel& channel(Rank peer, StreamId stream) final;

  void publish(StreamId stream, std::uint64_t index, const NoticeHead& head) final;
  void fail(StreamId stream, std::string_view why) final;
  void push_notice(Rank, StreamId) final {}
  std::uint64_t notices_of(Rank peer, StreamId stream) final;
  std::optional<NoticeHead> notice_of(Rank peer, StreamId stream, std::uint64_t index) final;
  std::optional<std::string> failure_of(Rank peer, StreamId stream) final;

  bool prepare_wait() final;
  void finish_wait() final;
  void wake() final { doorbell_.ring(); }

 protected:
  MemoryEndpoint(Rank rank, int world, ControlBlock& mine, Doorbell& doorbell);

  void add_peer(Rank peer, const ControlBlock& control, int bell_fd);
  void ring_all();

  // Our words and the peer's of one channel.
  struct Blocks {
    ChannelBlock& mine;
    const ChannelBlock& theirs;
  };
  virtual Blocks blocks(Rank peer, StreamId stream) = 0;
  virtual AddressSpace& space(Rank peer) = 0;

  // News that the transport alone knows of, such as the death of a peer: true once for each.
  virtual bool has_other_news() = 0;
  // Called in finish_wait() when we were woken by something else than our doorbell.
  virtual void handle_other_events() = 0;

 private:
  struct Peer {
    const ControlBlock* control;
    Bell bell;
    std::uint64_t failures_seen = 0;
  };

  bool has_news();
  const StreamNotices& board(Rank peer, StreamId stream) const;
  Peer& peer_at(Rank peer);

  Rank rank_;
  int world_;
  ControlBlock& mine_;
  Doorbell& doorbell_;
  std::vector<std::optional<Peer>> peers_;                // by rank; empty for ourselves
  std::vector<std::unique_ptr<MemoryChannel>> channels_;  // by rank and stream
  std::vector<MemoryChannel*> active_;                    // those that exist
};

}  // namespace lockstep::transport
