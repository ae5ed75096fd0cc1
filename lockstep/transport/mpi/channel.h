// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "lockstep/transport/channel.h"
#include "lockstep/transport/endpoint.h"
#include "lockstep/transport/mpi/frame.h"
#include "lockstep/transport/mpi/notices.h"
#include "lockstep/transport/mpi/wire.h"

namespace lockstep::transport::mpi {

// What all channels of an endpoint use.
struct Station {
  Wire& wire;
  Notices& notices;
  FramePool frames = {};
  bool moved = false;  // since the endpoint last looked
};

// Messages to and from one peer on one stream. Payloads pass through frames of our own on both sides: MPI
// cannot be stopped once it works on a buffer, and so never gets to see the caller's. At most kWindow frames
// are under way in each direction, so an idle receiver holds up the sender instead of its memory.
class MpiChannel final : public Channel {
 public:
  // `station` and `peer_gone` (set when MPI reports a failure) must outlive the channel.
  MpiChannel(Station& station, bool& peer_gone, Rank peer, StreamId stream);

  void send(const Envelope& envelope, ConstBytes payload) override;
  std::uint64_t sends_done() const override { return sends_done_; }
  Bytes landing(const Envelope&, std::size_t) override { return {}; }
  void put(const Envelope& envelope) override;
  void receive(const Envelope& envelope, Bytes into) override;
  void receive_view(const Envelope& envelope, std::size_t bytes) override;
  ConstBytes view() override;
  void consume(std::size_t bytes) override;
  std::uint64_t receives_done() const override { return receives_done_; }
  std::size_t received_bytes() const override;
  bool pump() override;
  void abandon() override;

  bool abandoned() const { return abandoned_; }
  // Has the peer taken everything that was offered and not abandoned?
  bool flushed() const { return outgoing_.empty() && departing_.empty(); }
  // The end of the channel: true when MPI uses none of its frames any more. To be repeated until then.
  bool close();

 private:
  static constexpr std::size_t kWindow = 4;

  struct Outgoing {
    Envelope envelope;
    ConstBytes payload;
    std::size_t offset = 0;
  };
  struct Expected {
    Envelope envelope;
    std::size_t bytes = 0;
    std::byte* into = nullptr;  // null: read in place
    std::size_t done = 0;       // copied or consumed

    bool agrees(const DataHeader& header) const {
      return header.envelope == envelope && header.message_bytes == bytes;
    }
  };
  struct UnderWay {
    Frame frame;
    Transfer transfer;
    bool ends_message = false;  // of a departure
    bool arrived = false;       // of an arrival
  };

  void expect(const Envelope& envelope, std::size_t bytes, std::byte* into);
  bool pump_outgoing();
  bool pump_incoming();
  void start_frame();
  void post_receives();
  bool front_arrived();
  void read_header(const Frame& frame, std::size_t bytes);
  ConstBytes front_payload();
  void take(std::size_t bytes);
  void pop_arrival();
  bool drop_arrivals();

  Station& station_;
  bool& peer_gone_;
  Rank peer_;
  StreamId stream_;

  std::deque<Outgoing> outgoing_;
  std::deque<UnderWay> departing_;
  std::uint64_t messages_started_ = 0;
  std::uint64_t sends_done_ = 0;

  std::deque<Expected> expected_;
  std::deque<UnderWay> arriving_;
  std::size_t frames_to_post_ = 0;
  std::size_t taken_ = 0;  // bytes of the front frame
  std::uint64_t receives_done_ = 0;
  bool abandoned_ = false;
};

}  // namespace lockstep::transport::mpi
