// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "lockstep/base/bytes.h"

namespace lockstep::transport {

// What a message claims to belong to. Opaque to transports: they carry it and compare it.
struct Envelope {
  std::uint64_t contract = 0;  // digest of the operation
  std::uint64_t sequence = 0;  // of the operation on its stream, or what else tells it apart

  bool operator==(const Envelope&) const = default;
};

// Thrown by pump(), view() and landing() when the two ends of a message disagree; no payload byte has been
// moved.
struct EnvelopeMismatch {
  Envelope mine;
  Envelope theirs;
  std::size_t my_bytes = 0;  // size of the message as each side sees it
  std::size_t their_bytes = 0;
};

// Messages between this rank and one peer on one stream, in order in each direction: the k-th message offered
// here is the k-th received there. No call blocks; transfers advance inside pump(). Not thread-safe: the
// owner of the endpoint serializes all calls.
//
// Nothing is promised about buffering: send() may stay undone until the peer has posted the matching receive.
// Small messages are usually done at once.
class Channel {
 public:
  virtual ~Channel() = default;

  // --- Outgoing.

  // Offers the next message. `payload` (not empty) must stay valid and unchanged until sends_done() counts
  // it.
  virtual void send(const Envelope& envelope, ConstBytes payload) = 0;

  // How many messages offered so far (by send or put) no longer need their payload.
  virtual std::uint64_t sends_done() const = 0;

  // Where the receiver of the next message, which has `bytes` bytes, lets us write it directly; empty when it
  // has not posted that receive yet or cannot expose the memory. Only valid when every earlier message has
  // been offered.
  virtual Bytes landing(const Envelope& envelope, std::size_t bytes) = 0;

  // Offers the next message, whose bytes the caller has already written into landing(). Done at once.
  virtual void put(const Envelope& envelope) = 0;

  // --- Incoming.

  // Posts the receive of the next message, which has exactly into.size() bytes. A sender that can see `into`
  // may write into it from now on.
  virtual void receive(const Envelope& envelope, Bytes into) = 0;

  // Posts the receive of the next message, to be read in place with view() and consume().
  virtual void receive_view(const Envelope& envelope, std::size_t bytes) = 0;

  // The readable, not yet consumed bytes of the oldest message that is not done, if it was posted by
  // receive_view(); otherwise empty. Valid until consume().
  virtual ConstBytes view() = 0;

  // Gives back the first `bytes` of view(); the message is done when all its bytes are consumed.
  virtual void consume(std::size_t bytes) = 0;

  // How many messages have been received completely.
  virtual std::uint64_t receives_done() const = 0;

  // Of the oldest receive that is not done: how many of its bytes have arrived, so far as is known
  // without a look. For whoever is stalled.
  virtual std::size_t received_bytes() const = 0;

  // How many bytes of messages pump() has copied out of memory that the peer has registered.
  virtual std::uint64_t copied_bytes() const { return 0; }

  // Moves what can be moved now; true if anything moved. Throws only EnvelopeMismatch, DataError (a frame
  // that breaks the format) and std::bad_alloc; a dead peer does not throw, it shows in Endpoint::alive().
  virtual bool pump() = 0;

  // Gives up all messages under way, after a failure: no memory of theirs is touched by this side once it
  // returns (what a frame that is half written still needs is copied first). The channel stays useless; what
  // still arrives is dropped.
  virtual void abandon() = 0;

  // Of an abandoned channel: false while the peer is still writing or reading where it was allowed to before.
  // It stops by itself, unless it is frozen.
  virtual bool settled() const { return true; }
};

}  // namespace lockstep::transport
