// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lockstep/rendezvous/line_prefix.h"
#include "lockstep/transport/connect/connection.h"

namespace lockstep::rendezvous {

// One of our own streams, written without ever waiting for its reader. Not thread-safe.
class Outlet {
 public:
  // `fd` must stay open. Its flags, which the shell and others may share, are left alone.
  explicit Outlet(int fd);

  int fd() const { return own_ ? own_.get() : fd_; }  // to poll for POLLOUT while pending()
  bool pending() const { return !text_.empty(); }
  bool has_room() const { return text_.size() < kMostHeld; }
  int error() const { return error_; }  // errno, once writing has failed; what comes after that is dropped

  // Writes what the reader takes now and holds the rest, however long it is.
  void put(std::string_view text);
  void flush();

 private:
  static constexpr std::size_t kMostHeld = std::size_t{64} * 1024;

  bool writable() const;

  int fd_;
  transport::Descriptor own_;  // the same pipe or terminal, opened anew
  std::string text_;           // not yet written
  int error_ = 0;
};

// One captured stream of a worker, on its way to one of ours, which must outlive it.
class Relay {
 public:
  Relay(transport::Descriptor from, Outlet& to, LinePrefix lines)
      : from_(std::move(from)), to_(to), lines_(std::move(lines)) {}

  int fd() const { return from_.get(); }
  bool wants_more() const { return to_.has_room(); }

  // Moves what is there while there is room for it; false at the end of the stream. Returns now and then
  // although there is more: a worker that never stops writing must not keep us from anything else.
  bool pump();

  // Moves what is there, room or not, and ends the last line.
  void finish();

 private:
  enum class Step { moved, nothing, end };
  Step move_some();

  transport::Descriptor from_;
  Outlet& to_;
  LinePrefix lines_;
};

}  // namespace lockstep::rendezvous
