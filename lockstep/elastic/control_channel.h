// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/elastic/message_codec.h"
#include "lockstep/transport/connect/connection.h"

namespace lockstep::elastic {

// One end of a control connection: whole messages, as message_codec.h has them. No call blocks. Not
// thread-safe.
class ControlChannel {
 public:
  // Of a peer that does not read, so much is kept.
  static constexpr std::size_t kMaxQueued = std::size_t{8} << 20;

  ControlChannel(std::unique_ptr<transport::Connection> connection, Sender peer)
      : connection_(std::move(connection)), peer_(peer) {}

  int fd() const { return connection_->fd(); }
  // What to poll for (POLLIN, POLLOUT).
  short events() const;
  // Whether receive() has more to give although the descriptor need not become readable.
  bool has_more() const { return has_more_; }

  // Sends what can be sent now and keeps the rest for flush(). PeerLost when the connection has ended or the
  // peer does not read.
  void send(std::vector<std::byte> message);
  void flush();

  struct Received {
    MessageType type{};
    std::vector<std::byte> body;
  };
  // What has come, in order; not everything at once when there is very much. DataError when it is nothing
  // that the peer may send; PeerLost when the connection has ended and everything was given.
  std::vector<Received> receive();

 private:
  bool read_some();
  [[noreturn]] void lost() const;

  std::unique_ptr<transport::Connection> connection_;
  Sender peer_;
  std::vector<std::byte> input_;
  bool has_more_ = false;
  bool is_closed_ = false;
  bool reading_awaits_write_ = false;
  std::deque<std::vector<std::byte>> output_;
  std::size_t sent_ = 0;    // of the first
  std::size_t queued_ = 0;  // bytes
};

}  // namespace lockstep::elastic
