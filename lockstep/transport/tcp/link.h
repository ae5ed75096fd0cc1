// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/transport/connect/connection.h"
#include "lockstep/transport/tcp/frame.h"

namespace lockstep::transport::tcp {

class Peer;

// A frame on its way out. Its payload is the sender's memory or `owned`.
struct OutgoingFrame {
  HeaderBytes header;
  ConstBytes payload;
  std::vector<std::byte> owned;
  bool counted = false;          // the outbox of `stream` is yet to be told that the payload was written
  bool reports_failure = false;  // and has not been written
  StreamId stream = 0;
  std::uint64_t sequence = 0;
};

// One connection of a peer: cuts the stream of bytes into frames and back. All frames that it writes come
// from the peer, all that it reads go to it.
class Link {
 public:
  Link(std::unique_ptr<Connection> connection, std::uint64_t generation);

  // Moves a bounded amount of what can be moved now; true if any byte moved. read() raises DataError when a
  // frame breaks the format.
  bool write(Peer& peer);
  bool read(Peer& peer);

  bool is_open() const { return connection_ != nullptr; }
  void close();
  int fd() const { return connection_->fd(); }

  // A write had no room: it can go on when the descriptor is writable.
  bool is_blocked() const { return blocked_; }
  bool has_output() const { return is_open() && !batch_.empty(); }
  bool owes_failure() const;
  bool has_buffered() const { return is_open() && connection_->has_buffered(); }

  // From now on touches no memory of messages on this stream: what is on its way out is copied, what is on
  // its way in is dropped. After std::bad_alloc, for want of memory for the copy, the link must be closed.
  void forget(StreamId stream);

 private:
  void fill_batch(Peer& peer);
  void advance_batch(Peer& peer, std::size_t bytes);
  std::ptrdiff_t fill(std::size_t& asked);
  void take_received(Peer& peer, std::size_t bytes);
  void parse_buffered(Peer& peer);
  void begin_frame(Peer& peer);
  void take_payload(Peer& peer, std::size_t bytes);
  bool reads_in_place() const { return header_ && !target_.empty(); }
  std::size_t payload_left() const { return header_ ? header_->length - payload_done_ : 0; }

  std::unique_ptr<Connection> connection_;
  std::uint64_t generation_;

  std::vector<OutgoingFrame> batch_;  // being written, in this order, until all of it is out
  std::size_t batch_written_ = 0;     // bytes of the batch
  bool blocked_ = false;

  std::vector<std::byte> buffer_;  // received and not yet looked at: [begin_, end_)
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::optional<FrameHeader> header_;  // of the frame whose payload is arriving
  Bytes target_;                       // where it goes; empty: dropped
  std::size_t payload_done_ = 0;
  bool expects_segment_ = false;                    // the frame after this one probably continues its message
  std::array<std::byte, kMaxFailureText> control_;  // payload of a small frame
};

}  // namespace lockstep::transport::tcp
