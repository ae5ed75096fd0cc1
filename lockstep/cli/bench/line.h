// SPDX-License-Identifier: Apache-2.0
//
// Lines of text between the coordinator of a benchmark and its agents, over Unix sockets. A side that waits
// sleeps: the cores belong to what is being measured.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lockstep/base/deadline.h"
#include "lockstep/cli/temporary_folder.h"
#include "lockstep/rendezvous/signal_inbox.h"
#include "lockstep/transport/connect/connection.h"

namespace lockstep::cli {

// One end of a conversation. Errors: PeerLost when the other end is gone, Timeout, DataError for a line over
// kMaxBenchLine; all name the peer as it was given to the constructor.
class LineSocket {
 public:
  LineSocket(transport::Descriptor fd, std::string peer) : fd_(std::move(fd)), peer_(std::move(peer)) {}

  // CommError when nobody listens there.
  static LineSocket connect(const std::filesystem::path& address, std::string peer);

  void send(std::string_view line, Deadline deadline);
  std::string receive(Deadline deadline);

  // From now on a signal that comes while this side waits is raised as Interrupted. The inbox must outlive
  // this.
  void watch(rendezvous::SignalInbox& signals) { signals_ = &signals; }

  void rename_peer(std::string peer) { peer_ = std::move(peer); }
  const std::string& peer() const { return peer_; }

 private:
  void wait_for(short events, Deadline deadline) const;

  transport::Descriptor fd_;
  std::string peer_;
  rendezvous::SignalInbox* signals_ = nullptr;  // null: nobody asks for them
  std::string buffered_;                        // received, not yet returned
};

// Where agents call in: a socket in a folder of its own.
class LineListener {
 public:
  LineListener();

  const std::filesystem::path& address() const { return address_; }

  // The next caller; none when nobody has come by the deadline. Interrupted by a signal.
  std::optional<LineSocket> accept(Deadline deadline, rendezvous::SignalInbox& signals);

 private:
  TemporaryFolder folder_;
  std::filesystem::path address_;
  transport::Descriptor fd_;
};

}  // namespace lockstep::cli
