// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/bytes.h"
#include "lockstep/base/deadline.h"
#include "lockstep/base/rank.h"
#include "lockstep/transport/channel.h"

namespace lockstep::transport {

// Streams are independent of each other; messages are ordered inside a stream.
using StreamId = std::uint32_t;
inline constexpr StreamId kMaxStreams = 256;

// What a rank last said about a stream, for peers that wonder why it is silent. The head is opaque to
// transports.
inline constexpr std::size_t kNoticeHeadBytes = 64;
using NoticeHead = std::array<std::byte, kNoticeHeadBytes>;
inline constexpr std::size_t kMaxFailureText = 480;  // longer texts are cut

class AddressSpace;

// How many heads per stream stay readable: the newest kNoticeHistory.
inline constexpr std::uint64_t kNoticeHistory = 8;

// One rank's access to all its peers over one transport (or several, see routed/). Ranks count within the
// endpoint. Not thread-safe except wake(): one owner serializes all calls, channels included.
class Endpoint {
 public:
  virtual ~Endpoint() = default;

  virtual Rank rank() const = 0;
  virtual int world() const = 0;

  // Name of the kind of link to the peer: "loopback", "shm", "tcp", "mpi".
  virtual std::string_view kind(Rank peer) const = 0;

  // Whether the peer runs on this host and so competes for its cores. Transports between hosts find out.
  virtual bool shares_host(Rank) const { return true; }

  // The channel to a peer (not to ourselves) on a stream (< kMaxStreams); it lives as long as the endpoint.
  virtual Channel& channel(Rank peer, StreamId stream) = 0;

  // --- Registered memory: peers of the same host read and write it in place. Aligned to 64 bytes,
  // zero-filled when new. Throws UsageError saying how much was asked for and what limits it when there is no
  // room. On transports that share no memory it is plain memory. release() takes exactly what allocate()
  // returned, when no message uses it.
  virtual Bytes allocate(std::size_t bytes) = 0;
  virtual void release(Bytes memory) = 0;

  // Peers' registered memory that was used counts as ours from then on (in the resident set). This ends that;
  // pages that are used again cost a fault each.
  virtual void forget_peer_memory() {}

  // The memory that we and the peer reach of each other for as long as this endpoint lives, also when the
  // peer's process has ended; null: none.
  virtual AddressSpace* lasting_space(Rank) { return nullptr; }

  // --- Notices. publish() makes `head` the notice number `index` (0, 1, 2, ... per stream) of this rank;
  // cheap enough for every operation. fail() publishes that the stream is broken here and why, once, and
  // tells all peers at once, also those that sleep; for one that has no room the report waits.
  virtual void publish(StreamId stream, std::uint64_t index, const NoticeHead& head) = 0;
  virtual void fail(StreamId stream, std::string_view why) = 0;

  // For whoever may not drive for long: returns when no report of failure waits any more, or at the deadline.
  virtual void pass_on_failures(Deadline) {}

  // Transports without shared memory send this rank's newest notice of the stream to the peer; others do
  // nothing.
  virtual void push_notice(Rank peer, StreamId stream) = 0;

  // How many notices the peer has published on the stream, as far as is known here (0: none).
  virtual std::uint64_t notices_of(Rank peer, StreamId stream) = 0;
  // Notice `index` of the peer; empty when not known (yet, or any more).
  virtual std::optional<NoticeHead> notice_of(Rank peer, StreamId stream, std::uint64_t index) = 0;
  // Why the stream is broken at the peer; empty while it is not.
  virtual std::optional<std::string> failure_of(Rank peer, StreamId stream) = 0;

  // False once the peer is known to be gone (its process ended, or the connection to it closed or failed).
  // May look at the operating system: for a stalled caller, not for every poll.
  virtual bool alive(Rank peer) = 0;

  // --- Sleeping. To wait without burning the core:
  //   if (endpoint.prepare_wait()) poll(endpoint.wait_fd(), ...);
  //   endpoint.finish_wait();
  // prepare_wait() is false when something that somebody waits for may have arrived since its channel was
  // pumped. A message that no receive is posted for does not keep it false: the channel is to be pumped after
  // a receive is posted. Between the two calls whatever a peer does to us (message, grant, failure, death) or
  // wake() makes wait_fd() readable. A mere notice does not: a stalled caller looks for notices now and then.
  virtual bool prepare_wait() = 0;
  virtual int wait_fd() const = 0;
  virtual void finish_wait() = 0;

  // Makes wait_fd() readable, from any thread or signal handler.
  virtual void wake() = 0;
};

}  // namespace lockstep::transport
