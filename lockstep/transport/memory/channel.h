// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/transport/channel.h"
#include "lockstep/transport/memory/incoming.h"
#include "lockstep/transport/memory/outgoing.h"

namespace lockstep::transport {

// A channel between two ranks that share memory. Both blocks must outlive it.
class MemoryChannel final : public Channel {
 public:
  MemoryChannel(ChannelBlock& mine, const ChannelBlock& theirs, AddressSpace& space, Bell& bell)
      : outgoing_(mine.outgoing, theirs.incoming, space, bell),
        incoming_(mine.incoming, theirs.outgoing, space, bell) {}

  void send(const Envelope& envelope, ConstBytes payload) override { outgoing_.send(envelope, payload); }
  std::uint64_t sends_done() const override { return outgoing_.done(); }
  Bytes landing(const Envelope& envelope, std::size_t bytes) override {
    return outgoing_.landing(envelope, bytes);
  }
  void put(const Envelope& envelope) override { outgoing_.put(envelope); }

  void receive(const Envelope& envelope, Bytes into) override { incoming_.receive(envelope, into); }
  void receive_view(const Envelope& envelope, std::size_t bytes) override {
    incoming_.receive_view(envelope, bytes);
  }
  ConstBytes view() override { return incoming_.view(); }
  void consume(std::size_t bytes) override { incoming_.consume(bytes); }
  std::uint64_t receives_done() const override { return incoming_.done(); }
  std::size_t received_bytes() const override { return incoming_.received_bytes(); }

  std::uint64_t copied_bytes() const override { return incoming_.copied_bytes(); }

  bool pump() override {
    const bool sent = outgoing_.pump();
    return incoming_.pump() || sent;
  }
  void abandon() override {
    outgoing_.abandon();
    incoming_.abandon();
  }
  bool settled() const override { return incoming_.settled() && outgoing_.settled(); }

  // Whether pump() could do more than the last time.
  bool has_news() const { return incoming_.has_news() || outgoing_.has_news(); }

 private:
  Outgoing outgoing_;
  Incoming incoming_;
};

}  // namespace lockstep::transport
