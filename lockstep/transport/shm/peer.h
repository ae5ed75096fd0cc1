// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "lockstep/base/deadline.h"
#include "lockstep/transport/connect/connection.h"
#include "lockstep/transport/memory/address_space.h"
#include "lockstep/transport/memory/mapping.h"
#include "lockstep/transport/memory/notices.h"
#include "lockstep/transport/memory/words.h"
#include "lockstep/transport/shm/arena.h"

namespace lockstep::transport {

// What a rank shows of itself when it meets a peer.
struct Greeting {
  Rank rank = 0;
  int world = 0;
  int control_fd = -1;  // its control segment
  int bell_fd = -1;     // the eventfd that wakes it
};

// A peer of the same host: its words, its registered memory, and the socket that tells when its process ends.
class ShmPeer final : public AddressSpace {
 public:
  // Exchanges greetings over an authenticated Unix socket and maps what the peer shows. `arena` is ours and
  // must outlive the peer. DataError when the peer's layout is not ours, PeerLost or Timeout when it does not
  // answer, Aborted when the caller is to stop.
  ShmPeer(std::unique_ptr<Connection> connection, const Greeting& mine, Rank peer, Arena& arena,
          Deadline deadline, const std::stop_token& stop = {});

  const ControlBlock& control() const { return control_.as<const ControlBlock>(); }
  const ChannelBlock& block(StreamId stream) const { return (&row_.as<const ChannelBlock>())[stream]; }
  int bell_fd() const { return bell_.get(); }

  // Readable when the peer has announced memory or is gone.
  int socket() const { return connection_->fd(); }
  bool alive() const { return alive_; }

  // Takes in announcements; notices the end of the peer. A peer that announces nonsense counts as gone.
  void read_socket();

  // Tells the peer of segments that our arena has grown by; what the socket does not take now is told later.
  void announce();

  // See Endpoint::forget_peer_memory().
  void forget() const {
    for (const Mapping& segment : segments_) segment.forget();
  }

  // Memory counts as exposed once its segment has been announced.
  std::optional<Place> expose(ConstBytes memory) override;
  std::byte* resolve(Place place, std::size_t bytes) override;

 private:
  void send_greeting(const Greeting& mine, Deadline deadline, const std::stop_token& stop);
  void take_greeting(const Greeting& mine, Deadline deadline, const std::stop_token& stop);
  bool read_announcement();

  std::unique_ptr<Connection> connection_;
  Rank rank_;
  Arena& arena_;
  Mapping control_;
  Mapping row_;
  Descriptor bell_;
  std::vector<Mapping> segments_;  // the peer's registered memory
  std::uint32_t announced_ = 0;    // segments of ours that the peer knows
  bool alive_ = true;
};

}  // namespace lockstep::transport
