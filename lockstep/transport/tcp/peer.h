// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "lockstep/base/rank.h"
#include "lockstep/transport/endpoint.h"
#include "lockstep/transport/tcp/block_pool.h"
#include "lockstep/transport/tcp/channel.h"
#include "lockstep/transport/tcp/frame.h"
#include "lockstep/transport/tcp/link.h"
#include "lockstep/transport/tcp/notices.h"

namespace lockstep::transport::tcp {

// What this rank knows of one other rank: the links to it, the channels over them, its notices.
class Peer {
 public:
  // `pools` and `progress` outlive this.
  Peer(Rank rank, std::uint64_t generation, BlockPools& pools, Progress& progress);

  void add_link(std::unique_ptr<Connection> connection);
  std::vector<Link>& links() { return links_; }

  Channel& channel(StreamId stream) { return channel_at(stream); }
  const PeerNotices& notices() const { return notices_; }

  // Moves what can be moved now, on all links; true if any byte moved. A frame that breaks the format closes
  // all links and is remembered, and so does one that there is no memory for, also in flush() and forget().
  bool pump();
  // The writing half alone.
  bool flush();
  bool has_output() const;
  // A report of failure has not been written completely, though it could be.
  bool owes_failure() const;

  // Every link is open.
  bool is_connected() const;
  // Why the links were closed here: DataError when the peer broke the format, or std::bad_alloc; null while
  // they were not.
  const std::exception_ptr& closing_error() const { return closing_error_; }

  // Sends a frame of this rank's own. A newer notice takes the place of one that has not been sent yet.
  void send_notice(StreamId stream, std::uint64_t index, const NoticeHead& head);
  void send_failure(StreamId stream, std::string_view why);

  // Gives up the messages of all channels.
  void abandon_all();

  // --- For channels.
  void enqueue(TcpChannel& channel);
  void forget(StreamId stream);

  // --- For links.
  std::optional<OutgoingFrame> next_frame();
  void on_written(StreamId stream, std::uint64_t sequence, std::size_t bytes);
  Bytes begin(const FrameHeader& header);
  void on_bytes(const FrameHeader& header, std::size_t bytes, std::size_t so_far);
  void on_control(const FrameHeader& header, ConstBytes payload);
  // The other side takes no more bytes.
  void stop_writing() { stopped_writing_ = true; }

 private:
  TcpChannel& channel_at(StreamId stream);
  void send_control(ControlFrame frame);
  void close_links(std::exception_ptr why);

  Rank rank_;
  std::uint64_t generation_;
  BlockPools& pools_;
  Progress& progress_;
  std::deque<ControlFrame> control_;                               // goes before all messages
  std::deque<TcpChannel*> ready_;                                  // may have a frame to send, served in turn
  std::array<std::unique_ptr<TcpChannel>, kMaxStreams> channels_;  // made when first used
  PeerNotices notices_;
  std::vector<Link> links_;
  bool stopped_writing_ = false;
  std::exception_ptr closing_error_;
};

}  // namespace lockstep::transport::tcp
