// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "lockstep/transport/connect/connection.h"
#include "lockstep/transport/endpoint.h"
#include "lockstep/transport/tcp/peer.h"

namespace lockstep::transport::tcp {

// The endpoint of a world whose connections stand.
class TcpEndpoint final : public Endpoint {
 public:
  // links[r]: the connections to rank r in the order of their numbers; none for ourselves.
  TcpEndpoint(Rank rank, std::uint64_t generation,
              std::vector<std::vector<std::unique_ptr<Connection>>> links);
  ~TcpEndpoint() override;

  Rank rank() const override { return rank_; }
  int world() const override { return static_cast<int>(peers_.size()); }
  std::string_view kind(Rank) const override { return "tcp"; }
  bool shares_host(Rank peer) const override { return shares_host_[peer]; }
  Channel& channel(Rank peer, StreamId stream) override { return peer_at(peer).channel(stream); }

  Bytes allocate(std::size_t bytes) override;
  void release(Bytes memory) override;

  void publish(StreamId stream, std::uint64_t index, const NoticeHead& head) override;
  void fail(StreamId stream, std::string_view why) override;
  void push_notice(Rank peer, StreamId stream) override;
  std::uint64_t notices_of(Rank peer, StreamId stream) override;
  std::optional<NoticeHead> notice_of(Rank peer, StreamId stream, std::uint64_t index) override;
  std::optional<std::string> failure_of(Rank peer, StreamId stream) override;
  bool alive(Rank peer) override;

  bool prepare_wait() override;
  int wait_fd() const override { return poller_.get(); }
  void finish_wait() override;
  void wake() override;

 private:
  struct OwnNotice {
    std::uint64_t index = 0;
    NoticeHead head;
  };

  Peer& peer_at(Rank rank);
  void watch(Link& link, Rank rank, bool for_writing, int operation);
  void update_watches(Rank rank);
  void tell_failure();
  void pass_on_what_was_sent();

  Rank rank_;
  Descriptor poller_;  // epoll: all links and the bell
  Descriptor bell_;    // eventfd
  BlockPools pools_;
  Progress progress_;
  std::map<StreamId, OwnNotice> own_notices_;
  std::set<StreamId> failed_;
  std::map<const std::byte*, std::size_t> allocated_;
  std::vector<std::unique_ptr<Peer>> peers_;        // by rank; null for ourselves
  std::vector<std::vector<bool>> watched_writing_;  // by rank and link
  std::vector<bool> shares_host_;                   // by rank
};

}  // namespace lockstep::transport::tcp
