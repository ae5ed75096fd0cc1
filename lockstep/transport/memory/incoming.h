// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "lockstep/base/bytes.h"
#include "lockstep/transport/channel.h"
#include "lockstep/transport/memory/address_space.h"
#include "lockstep/transport/memory/bell.h"
#include "lockstep/transport/memory/queue.h"
#include "lockstep/transport/memory/words.h"

namespace lockstep::transport {

// The receiving half of a channel in memory; the calls are those of Channel.
class Incoming {
 public:
  // Everything referred to must outlive it.
  Incoming(ReceiverWords& mine, const SenderWords& theirs, AddressSpace& space, Bell& bell)
      : mine_(mine), theirs_(theirs), space_(space), bell_(bell) {}

  void receive(const Envelope& envelope, Bytes into);
  void receive_view(const Envelope& envelope, std::size_t bytes);
  ConstBytes view();
  void consume(std::size_t bytes);
  std::uint64_t done() const { return done_; }
  std::size_t received_bytes() const { return got_ + piece_.size(); }
  std::uint64_t copied_bytes() const { return copied_; }
  bool pump();
  void abandon();
  bool settled() const { return theirs_.writing.load(std::memory_order_acquire) == 0; }

  // Whether something that was asked for may have arrived since the last pump().
  bool has_news() const;

 private:
  struct Receive {
    Envelope envelope;
    std::size_t bytes = 0;
    std::byte* into = nullptr;  // null: to be viewed
    bool granted = false;
  };
  // A parcel, read once.
  struct Arrival {
    Envelope envelope;
    std::size_t message_bytes = 0;
    Kind kind = Kind::staged;
    Place place;
    std::size_t bytes = 0;
  };

  void post(const Receive& receive);
  bool grant(const Receive& receive);
  const Word& next_number() const { return theirs_.parcels[opened_ % kParcels].number; }
  Arrival read_next() const;
  void check(const Arrival& arrival, const Receive& receive) const;
  bool open_next();
  void copy_out(const Receive& receive, ConstBytes bytes);
  void advance(std::size_t bytes);
  void close_piece();
  bool taken_back() const;
  void stop_reading();
  void end_message();
  void give_back(bool at_once);

  ReceiverWords& mine_;
  const SenderWords& theirs_;
  AddressSpace& space_;
  Bell& bell_;

  Queue<Receive> receives_;  // posted, not done
  std::uint64_t posted_ = 0;
  std::uint64_t done_ = 0;
  std::size_t got_ = 0;       // bytes of the oldest receive that have been moved or consumed
  std::uint64_t copied_ = 0;  // out of lent memory

  std::uint64_t opened_ = 0;  // parcels opened so far
  ConstBytes piece_;          // what is left of the last one opened
  Kind piece_kind_ = Kind::staged;
  std::uint64_t staging_end_ = 0;  // position after the last staged piece opened

  std::uint64_t given_parcels_ = 0;  // what the sender has been told
  std::uint64_t given_staging_ = 0;
  std::uint64_t seen_number_ = 0;  // in the next parcel, at the last pump
  bool abandoned_ = false;
};

}  // namespace lockstep::transport
