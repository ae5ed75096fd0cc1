// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "lockstep/transport/channel.h"
#include "lockstep/transport/tcp/block_pool.h"
#include "lockstep/transport/tcp/frame.h"
#include "lockstep/transport/tcp/inbox.h"
#include "lockstep/transport/tcp/outbox.h"

namespace lockstep::transport::tcp {

class Peer;

// Progress that the owner of the endpoint has not seen yet: bytes that one channel's pump() brings may belong
// to another channel.
struct Progress {
  int channels = 0;   // that moved since their last pump()
  bool told = false;  // prepare_wait() has already refused because of them
};

class TcpChannel final : public Channel {
 public:
  // All references outlive the channel.
  TcpChannel(Peer& peer, StreamId stream, std::deque<ControlFrame>& control, BlockPools& pools,
             Progress& progress)
      : peer_(peer),
        stream_(stream),
        progress_(progress),
        outbox_(stream, control),
        inbox_(stream, control, pools) {}

  void send(const Envelope& envelope, ConstBytes payload) override;
  std::uint64_t sends_done() const override { return outbox_.done(); }
  Bytes landing(const Envelope& envelope, std::size_t bytes) override;
  void put(const Envelope& envelope) override;
  void receive(const Envelope& envelope, Bytes into) override { inbox_.post(envelope, into); }
  void receive_view(const Envelope& envelope, std::size_t bytes) override {
    inbox_.post_view(envelope, bytes);
  }
  ConstBytes view() override;
  void consume(std::size_t bytes) override { inbox_.consume(bytes); }
  std::uint64_t receives_done() const override { return inbox_.done(); }
  std::size_t received_bytes() const override { return inbox_.arrived_bytes(); }
  bool pump() override;
  void abandon() override;

  // --- For the peer, which brings what the links read and takes what they write.
  StreamId stream() const { return stream_; }
  std::optional<PayloadFrame> next_frame() { return outbox_.next(); }
  void on_written(std::uint64_t sequence, std::size_t bytes);
  Bytes begin(const FrameHeader& header);
  void on_bytes(const FrameHeader& header, std::size_t bytes, std::size_t so_far);
  void on_control(const FrameHeader& header, ConstBytes payload);

  bool is_queued = false;  // in the peer's list of channels that may have a frame to send

 private:
  void mark_progress();
  bool take_progress();
  void throw_what_is_wrong() const;

  Peer& peer_;
  StreamId stream_;
  Progress& progress_;
  bool moved_ = false;  // since the last pump()
  bool abandoned_ = false;
  Outbox outbox_;
  Inbox inbox_;
  std::optional<EnvelopeMismatch> told_mismatch_;  // the other side found it
};

}  // namespace lockstep::transport::tcp
