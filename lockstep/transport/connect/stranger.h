// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>

#include "lockstep/transport/connect/connection.h"
#include "lockstep/transport/connect/handshake.h"

namespace lockstep::transport {

// Waits for a descriptor that belongs to somebody else and is not closed here.
class Watch : public asio::posix::stream_descriptor {
 public:
  Watch(asio::io_context& io, int fd) : basic_stream_descriptor(io, fd) {}
  ~Watch() { let_go(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void let_go() {
    if (is_open()) release();
  }
};

// A connection to a listener that has not proved itself yet. Runs in the listener's thread only; its handlers
// keep it alive until it has ended.
class Stranger : public std::enable_shared_from_this<Stranger> {
 public:
  enum class End : std::uint8_t { accepted, refused, timed_out, drained, dropped };
  // Called once when the handshake has ended; and, after `refused` or `timed_out`, once more with `drained`.
  using OnEnd = std::function<void(Stranger&, End, const std::string& why)>;

  Stranger(asio::io_context& io, std::unique_ptr<Connection> connection, Handshake handshake, OnEnd on_end);

  void start(std::chrono::milliseconds timeout);
  // Closes without calling back.
  void drop();

  // True while it may still become a peer.
  bool is_pending() const { return state_ == State::talking; }
  std::string describe() const { return name_; }
  int fd() const { return connection_->fd(); }
  // After `accepted`.
  AuthenticatedConnection take();

 private:
  enum class State : std::uint8_t { talking, draining, ended };

  void step();
  bool advance();
  bool flush();
  void wait(Readiness what, void (Stranger::*then)());
  void refuse(End how, const std::string& why);
  void drain();
  void end(End how, const std::string& why);

  std::unique_ptr<Connection> connection_;
  Handshake handshake_;
  OnEnd on_end_;
  Watch watch_;
  asio::steady_timer timer_;
  State state_ = State::talking;
  std::vector<std::byte> output_;
  bool has_spoken_ = false;  // we have answered its hello
  std::size_t drained_bytes_ = 0;
  std::string name_;
};

}  // namespace lockstep::transport
