// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/memory/outgoing.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/transport/memory/copy.h"
#include "lockstep/transport/memory/fence.h"

namespace lockstep::transport {
namespace {

constexpr std::size_t whole_lines(std::size_t bytes) {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

}  // namespace

std::optional<std::uint64_t> place_in_staging(std::uint64_t head, std::uint64_t consumed, std::size_t bytes) {
  const std::uint64_t to_end = kStagingBytes - head % kStagingBytes;
  const std::uint64_t at = bytes <= to_end ? head : head + to_end;
  if (at + whole_lines(bytes) - consumed > kStagingBytes) return std::nullopt;
  return at;
}

bool Outgoing::refresh() {
  // Acquire: the peer has finished reading what these words give back.
  const std::uint64_t taken = theirs_.taken.load(std::memory_order_acquire);
  const std::uint64_t consumed = theirs_.consumed.load(std::memory_order_acquire);
  if (taken < taken_ || taken > posted_ || consumed < consumed_ || consumed > head_) return false;
  taken_ = taken;
  consumed_ = consumed;
  while (!loans_.empty() && loans_.front().parcel <= taken_) loans_.pop();
  return true;
}

bool Outgoing::parcel_free() {
  if (posted_ - taken_ < kParcels) return true;
  refresh();
  return posted_ - taken_ < kParcels;
}

std::optional<std::uint64_t> Outgoing::reserve_staging(std::size_t bytes) {
  std::optional<std::uint64_t> at = place_in_staging(head_, consumed_, bytes);
  if (!at) {
    refresh();
    at = place_in_staging(head_, consumed_, bytes);
  }
  if (at) head_ = *at + whole_lines(bytes);
  return at;
}

void Outgoing::post(const Envelope& envelope, std::size_t message_bytes, const Piece& piece) {
  Parcel& parcel = mine_.parcels[posted_ % kParcels];
  constexpr auto relaxed = std::memory_order_relaxed;
  parcel.contract.store(envelope.contract, relaxed);
  parcel.sequence.store(envelope.sequence, relaxed);
  parcel.message_bytes.store(message_bytes, relaxed);
  parcel.kind_and_segment.store(
      static_cast<std::uint32_t>(piece.kind) | static_cast<std::uint64_t>(piece.segment) << 32, relaxed);
  parcel.offset.store(piece.offset, relaxed);
  parcel.bytes.store(piece.bytes, relaxed);
  parcel.number.store(++posted_, std::memory_order_release);
}

bool Outgoing::stage(const Envelope& envelope, ConstBytes payload, std::size_t from, std::size_t bytes) {
  if (!parcel_free()) return false;
  const std::optional<std::uint64_t> at = reserve_staging(bytes);
  if (!at) return false;
  copy_for_peer(mine_.staging + *at % kStagingBytes, payload.subspan(from, bytes));
  post(envelope, payload.size(), {.kind = Kind::staged, .segment = 0, .offset = *at, .bytes = bytes});
  return true;
}

void Outgoing::send(const Envelope& envelope, ConstBytes payload) {
  LOCKSTEP_CHECK(!payload.empty());
  landing_bytes_ = 0;
  landing_wanted_ = false;
  const std::uint64_t number = offered_++;
  if (abandoned_) return;
  const bool eager = payload.size() <= kEagerBytes;
  if (eager && queue_.empty() && stage(envelope, payload, 0, payload.size())) {
    bell_.ring();
    return;
  }
  queue_.push({.number = number,
               .envelope = envelope,
               .payload = payload,
               .lent = eager ? std::nullopt : space_.expose(payload)});
  if (queue_.size() == 1) advance_all();
}

// False when there is no room now.
bool Outgoing::advance_front() {
  Message& message = queue_.front();
  if (message.lent) {
    if (!parcel_free()) return false;
    post(message.envelope, message.payload.size(),
         {.kind = Kind::lent,
          .segment = message.lent->segment,
          .offset = message.lent->offset,
          .bytes = message.payload.size()});
    loans_.push({.number = message.number, .parcel = posted_});
    queue_.pop();
    return true;
  }
  const std::size_t bytes = std::min(kPieceBytes, message.payload.size() - message.staged);
  if (!stage(message.envelope, message.payload, message.staged, bytes)) return false;
  message.staged += bytes;
  if (message.staged == message.payload.size()) queue_.pop();
  return true;
}

bool Outgoing::advance_all() {
  bool moved = false;
  while (!queue_.empty() && advance_front()) moved = true;
  if (moved) bell_.ring();
  return moved;
}

bool Outgoing::can_land() const {
  return queue_.empty() && posted_ - taken_ < kParcels &&
         theirs_.grants[offered_ % kGrants].number.load(std::memory_order_acquire) == offered_ + 1;
}

bool Outgoing::pump() {
  if (loans_.empty() && queue_.empty() && !landing_wanted_) return false;
  const std::uint64_t done_before = done();
  if (!refresh()) {
    throw DataError("a peer claims to have taken what was never sent to it: its channel words are corrupt");
  }
  bool moved = advance_all();
  moved |= done() != done_before;
  if (landing_wanted_ && can_land()) {
    landing_wanted_ = false;
    moved = true;
  }
  return moved;
}

bool Outgoing::has_news() const {
  if (loans_.empty() && queue_.empty() && !landing_wanted_) return false;
  return theirs_.taken.load(std::memory_order_relaxed) != taken_ ||
         theirs_.consumed.load(std::memory_order_relaxed) != consumed_ || (landing_wanted_ && can_land());
}

std::uint64_t Outgoing::done() const {
  if (abandoned_) return offered_;
  if (!loans_.empty()) return loans_.front().number;
  return queue_.empty() ? offered_ : queue_.front().number;
}

Bytes Outgoing::landing(const Envelope& envelope, std::size_t bytes) {
  landing_bytes_ = 0;
  if (abandoned_) return {};
  landing_wanted_ = !can_land();
  if (landing_wanted_) return {};
  const Grant& grant = theirs_.grants[offered_ % kGrants];
  constexpr auto relaxed = std::memory_order_relaxed;
  const Envelope theirs = {grant.contract.load(relaxed), grant.sequence.load(relaxed)};
  const std::size_t granted = grant.bytes.load(relaxed);
  if (theirs != envelope || granted != bytes) throw EnvelopeMismatch{envelope, theirs, bytes, granted};
  const Place place = {static_cast<std::uint32_t>(grant.segment.load(relaxed)), grant.offset.load(relaxed)};
  std::byte* memory = space_.resolve(place, bytes);
  // The receiver takes its grant back before it looks at this word; we look at the grant after writing it. So
  // either we see that it is gone, or the receiver sees us and waits.
  mine_.writing.store(offered_ + 1, relaxed);
  full_fence();
  if (!can_land()) {
    mine_.writing.store(0, relaxed);
    return {};
  }
  landing_bytes_ = bytes;
  return {memory, bytes};
}

void Outgoing::put(const Envelope& envelope) {
  LOCKSTEP_CHECK(landing_bytes_ > 0, "put() without landing()");
  const std::size_t bytes = std::exchange(landing_bytes_, 0);
  ++offered_;
  post(envelope, bytes, {.kind = Kind::landed, .segment = 0, .offset = 0, .bytes = bytes});
  mine_.writing.store(0, std::memory_order_release);
  bell_.ring();
}

void Outgoing::abandon() {
  abandoned_ = true;
  mine_.writing.store(0, std::memory_order_release);
  // Before the caller may change what it had lent.
  mine_.revoked.store(1, std::memory_order_relaxed);
  full_fence();
  queue_.clear();
  loans_.clear();
  landing_wanted_ = false;
}

}  // namespace lockstep::transport
