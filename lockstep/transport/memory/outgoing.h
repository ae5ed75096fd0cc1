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

// The position at which `bytes` bytes can be staged in one piece, when everything before `consumed` is free
// and everything from there to `head` is not; empty when there is no room yet. Positions only grow.
std::optional<std::uint64_t> place_in_staging(std::uint64_t head, std::uint64_t consumed, std::size_t bytes);

// The sending half of a channel in memory; the calls are those of Channel.
class Outgoing {
 public:
  // Everything referred to must outlive it.
  Outgoing(SenderWords& mine, const ReceiverWords& theirs, AddressSpace& space, Bell& bell)
      : mine_(mine), theirs_(theirs), space_(space), bell_(bell) {}

  void send(const Envelope& envelope, ConstBytes payload);
  Bytes landing(const Envelope& envelope, std::size_t bytes);
  void put(const Envelope& envelope);
  std::uint64_t done() const;
  bool pump();
  void abandon();
  bool settled() const { return theirs_.reading.load(std::memory_order_acquire) == 0; }

  // Whether the peer has done something we may be waiting for since the last pump().
  bool has_news() const;

 private:
  struct Message {
    std::uint64_t number = 0;  // among all messages offered
    Envelope envelope;
    ConstBytes payload;
    std::optional<Place> lent;  // where the peer can read it itself
    std::size_t staged = 0;     // bytes already passed on
  };
  // A message that the peer reads in place: done when the peer has taken its parcel.
  struct Loan {
    std::uint64_t number = 0;
    std::uint64_t parcel = 0;
  };
  struct Piece {
    Kind kind;
    std::uint32_t segment;
    std::uint64_t offset;
    std::size_t bytes;
  };

  bool parcel_free();
  std::optional<std::uint64_t> reserve_staging(std::size_t bytes);
  // Looks at the peer's words and ends loans; false, and nothing changed, when they cannot be true.
  bool refresh();
  // Whether the next message may be written where the peer wants it.
  bool can_land() const;
  void post(const Envelope& envelope, std::size_t message_bytes, const Piece& piece);
  bool stage(const Envelope& envelope, ConstBytes payload, std::size_t from, std::size_t bytes);
  bool advance_front();
  bool advance_all();

  SenderWords& mine_;
  const ReceiverWords& theirs_;
  AddressSpace& space_;
  Bell& bell_;

  std::uint64_t posted_ = 0;  // parcels
  std::uint64_t head_ = 0;    // staging position
  std::uint64_t taken_ = 0;   // last seen of the peer's words
  std::uint64_t consumed_ = 0;
  std::uint64_t offered_ = 0;  // messages
  Queue<Message> queue_;       // offered, not yet wholly posted
  Queue<Loan> loans_;          // posted, not yet taken

  std::size_t landing_bytes_ = 0;  // what landing() promised for the next message; 0: nothing
  bool landing_wanted_ = false;    // asked for in vain, for the next message
  bool abandoned_ = false;
};

}  // namespace lockstep::transport
