// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/memory/incoming.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/memory/copy.h"
#include "lockstep/transport/memory/fence.h"

namespace lockstep::transport {
namespace {

// The most that one pump() copies, so that a long message does not starve other channels.
constexpr std::size_t kPumpBytes = std::size_t{1024} * 1024;

constexpr std::size_t kStreamedReceive = std::size_t{4} * 1024 * 1024;

// Eager messages are given back in batches: fewer writes to the line that the sender polls, and the sender,
// which has at least three quarters of each ring left, cannot be blocked by what is held back.
constexpr std::uint64_t kHeldParcels = kParcels / 4;
constexpr std::uint64_t kHeldStaging = kStagingBytes / 4;

// No parcel has this number: whatever stands there is news.
constexpr std::uint64_t kNeverSeen = ~std::uint64_t{0};

[[noreturn]] void corrupt(const char* what, std::uint64_t found) {
  throw DataError(fmt::format("a message parcel of a peer is corrupt: {} is {}", what, found));
}

}  // namespace

void Incoming::receive(const Envelope& envelope, Bytes into) {
  LOCKSTEP_CHECK(!into.empty());
  post({.envelope = envelope, .bytes = into.size(), .into = into.data()});
}

void Incoming::receive_view(const Envelope& envelope, std::size_t bytes) {
  LOCKSTEP_CHECK(bytes > 0);
  post({.envelope = envelope, .bytes = bytes});
}

void Incoming::post(const Receive& receive) {
  Receive posted = receive;
  posted.granted = !abandoned_ && grant(receive);
  receives_.push(posted);
  ++posted_;
  seen_number_ = kNeverSeen;
}

// Short messages come through staging before a grant could reach the sender.
bool Incoming::grant(const Receive& receive) {
  if (receive.into == nullptr || receive.bytes <= kEagerBytes || posted_ - done_ >= kGrants) return false;
  const std::optional<Place> place = space_.expose({receive.into, receive.bytes});
  if (!place) return false;
  Grant& grant = mine_.grants[posted_ % kGrants];
  constexpr auto relaxed = std::memory_order_relaxed;
  grant.contract.store(receive.envelope.contract, relaxed);
  grant.sequence.store(receive.envelope.sequence, relaxed);
  grant.bytes.store(receive.bytes, relaxed);
  grant.segment.store(place->segment, relaxed);
  grant.offset.store(place->offset, relaxed);
  grant.number.store(posted_ + 1, std::memory_order_release);
  bell_.ring();
  return true;
}

Incoming::Arrival Incoming::read_next() const {
  const Parcel& parcel = theirs_.parcels[opened_ % kParcels];
  constexpr auto relaxed = std::memory_order_relaxed;
  const std::uint64_t kind_and_segment = parcel.kind_and_segment.load(relaxed);
  return {.envelope = {parcel.contract.load(relaxed), parcel.sequence.load(relaxed)},
          .message_bytes = parcel.message_bytes.load(relaxed),
          .kind = static_cast<Kind>(kind_and_segment & 0xffffffffu),
          .place = {static_cast<std::uint32_t>(kind_and_segment >> 32), parcel.offset.load(relaxed)},
          .bytes = parcel.bytes.load(relaxed)};
}

void Incoming::check(const Arrival& arrival, const Receive& receive) const {
  if (arrival.envelope != receive.envelope || arrival.message_bytes != receive.bytes) {
    if (got_ > 0) corrupt("the envelope of a later piece of a message", arrival.envelope.contract);
    throw EnvelopeMismatch{receive.envelope, arrival.envelope, receive.bytes, arrival.message_bytes};
  }
  const std::size_t left = receive.bytes - got_;
  switch (arrival.kind) {
    case Kind::staged:
      if (arrival.bytes == 0 || arrival.bytes > left) corrupt("the size of a piece", arrival.bytes);
      if (arrival.bytes > kStagingBytes - arrival.place.offset % kStagingBytes ||
          arrival.place.offset < staging_end_ || arrival.place.offset - staging_end_ > kStagingBytes) {
        corrupt("the position of a piece", arrival.place.offset);
      }
      return;
    case Kind::lent:
      if (arrival.bytes != left || got_ > 0) corrupt("the size of a message lent", arrival.bytes);
      return;
    case Kind::landed:
      if (!receive.granted || got_ > 0)
        corrupt("a message put where nothing was granted, its size", arrival.bytes);
      return;
  }
  corrupt("the kind of a message", static_cast<std::uint32_t>(arrival.kind));
}

// True when the next parcel had arrived for a posted receive; it is then open, or done if it had landed.
bool Incoming::open_next() {
  if (abandoned_ || receives_.empty()) return false;
  if (next_number().load(std::memory_order_acquire) != opened_ + 1) return false;
  const Arrival arrival = read_next();
  check(arrival, receives_.front());
  // Between threads, the memory of a loan may be gone by now. The sender takes it back before it looks at
  // this word; we look whether it has after writing it. So either we see that, or the sender sees us and
  // waits.
  if (arrival.kind == Kind::lent) {
    mine_.reading.store(opened_ + 1, std::memory_order_relaxed);
    if (taken_back()) {
      abandoned_ = true;
      stop_reading();
      return false;
    }
  }
  piece_kind_ = arrival.kind;
  if (arrival.kind == Kind::staged) {
    piece_ = {theirs_.staging + arrival.place.offset % kStagingBytes, arrival.bytes};
    staging_end_ = arrival.place.offset + (arrival.bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  } else if (arrival.kind == Kind::lent) {
    piece_ = {space_.resolve(arrival.place, arrival.bytes), arrival.bytes};
  }
  ++opened_;
  if (arrival.kind == Kind::landed) {
    end_message();
    give_back(false);
  }
  return true;
}

void Incoming::advance(std::size_t bytes) {
  got_ += bytes;
  piece_ = piece_.subspan(bytes);
  if (piece_.empty()) close_piece();
}

void Incoming::close_piece() {
  const Receive& receive = receives_.front();
  if (piece_kind_ == Kind::lent) {
    stop_reading();
    if (taken_back()) {
      abandoned_ = true;
      return;
    }
  }
  const bool sender_waits = piece_kind_ == Kind::lent || receive.bytes > kEagerBytes;
  if (got_ == receive.bytes) end_message();
  give_back(sender_waits);
}

// What was read of a loan that the sender has taken back may be anything: the message never arrives.
bool Incoming::taken_back() const {
  full_fence();
  return theirs_.revoked.load(std::memory_order_relaxed) != 0;
}

// Release: our reads come first.
void Incoming::stop_reading() {
  mine_.reading.store(0, std::memory_order_release);
}

void Incoming::end_message() {
  receives_.pop();
  ++done_;
  got_ = 0;
}

void Incoming::give_back(bool at_once) {
  if (!at_once && opened_ - given_parcels_ < kHeldParcels && staging_end_ - given_staging_ < kHeldStaging) {
    return;
  }
  given_parcels_ = opened_;
  given_staging_ = staging_end_;
  // Release: our reads of what is given back come first.
  mine_.consumed.store(staging_end_, std::memory_order_release);
  mine_.taken.store(opened_, std::memory_order_release);
  bell_.ring();
}

ConstBytes Incoming::view() {
  if (receives_.empty() || receives_.front().into != nullptr) return {};
  if (piece_.empty()) open_next();
  return piece_;
}

void Incoming::consume(std::size_t bytes) {
  LOCKSTEP_CHECK(bytes <= piece_.size() && !receives_.empty() && receives_.front().into == nullptr);
  if (bytes > 0) advance(bytes);
}

// What is longer than any cache need not pass through one.
void Incoming::copy_out(const Receive& receive, ConstBytes bytes) {
  if (piece_kind_ == Kind::lent) copied_ += bytes.size();
  if (receive.bytes >= kStreamedReceive && streaming_pays()) {
    copy_streaming(receive.into + got_, bytes);
  } else {
    std::memcpy(receive.into + got_, bytes.data(), bytes.size());
  }
}

bool Incoming::pump() {
  if (abandoned_) return false;
  bool moved = false;
  std::size_t budget = kPumpBytes;
  while (budget > 0) {
    // Looked at before anything is decided: what arrives after this is news.
    seen_number_ = next_number().load(std::memory_order_relaxed);
    if (piece_.empty()) {
      if (!open_next()) break;
      moved = true;
      continue;
    }
    const Receive& receive = receives_.front();
    if (receive.into == nullptr) break;
    const std::size_t bytes = std::min(budget, piece_.size());
    copy_out(receive, piece_.first(bytes));
    advance(bytes);
    budget -= bytes;
    moved = true;
  }
  if (budget == 0) seen_number_ = kNeverSeen;
  return moved;
}

// What nobody has asked for yet is none: no pump() could take it, and the endpoint would never sleep. Whoever
// asks for it later pumps, because of what post() notes.
bool Incoming::has_news() const {
  return !abandoned_ && !receives_.empty() && next_number().load(std::memory_order_relaxed) != seen_number_;
}

void Incoming::abandon() {
  abandoned_ = true;
  // A peer that has not asked for a landing yet gets none any more; whether one is writing shows in
  // settled().
  for (Grant& grant : mine_.grants) grant.number.store(0, std::memory_order_relaxed);
  full_fence();
  receives_.clear();
  piece_ = {};
  stop_reading();
  got_ = 0;
}

}  // namespace lockstep::transport
