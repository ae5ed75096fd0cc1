// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/transport/endpoint.h"
#include "lockstep/transport/mpi/frame.h"
#include "lockstep/transport/mpi/wire.h"

namespace lockstep::transport::mpi {

// The newest notices of one rank on one stream, and why the stream broke there.
struct NoticeLog {
  std::uint64_t count = 0;
  std::array<std::optional<std::pair<std::uint64_t, NoticeHead>>, kNoticeHistory> newest = {};
  std::optional<std::string> failure;

  void add(std::uint64_t index, const NoticeHead& head);
  std::optional<NoticeHead> at(std::uint64_t index) const;
};

// Notices, failures and farewells between this rank and all others. At most one control frame is under way to
// each peer; those that wait are merged, so a peer that never listens costs a few frames of memory.
class Notices {
 public:
  explicit Notices(Wire& wire);  // which must outlive this

  void publish(StreamId stream, std::uint64_t index, const NoticeHead& head);
  void push(Rank peer, StreamId stream);
  void fail(StreamId stream, std::string_view why);
  void say_goodbye();

  // What this rank has published, and what is known of a peer.
  const NoticeLog& published(StreamId stream) { return own_[stream]; }
  const NoticeLog& heard(Rank peer, StreamId stream) const;
  // A notice of a peer that came along with data.
  void note(Rank peer, StreamId stream, std::uint64_t index, const NoticeHead& head);
  bool said_goodbye(Rank peer) const { return peers_[peer].gone; }
  // Has a stream broken here or, as far as is known, at a peer?
  bool any_failure() const { return any_failure_; }

  // Sends and receives what it can; true if a frame came in.
  bool progress();
  // Does a report of failure wait to be sent?
  bool owes_failure() const;
  // Have all peers taken what was sent to them?
  bool flushed() const;
  // As MpiChannel::close().
  bool close();

 private:
  struct Peer {
    std::deque<ControlFrame> waiting;
    ControlFrame departing;
    std::optional<Transfer> transfer;
    std::map<StreamId, NoticeLog> logs;
    bool gone = false;
  };

  void send_next(Rank rank);
  void listen();
  void take(Rank from, std::size_t bytes);

  Wire& wire_;
  std::map<StreamId, NoticeLog> own_;
  std::deque<Peer> peers_;  // a deque: frames under way must not move
  ControlFrame arriving_;
  std::optional<Transfer> listening_;
  bool any_failure_ = false;
};

}  // namespace lockstep::transport::mpi
