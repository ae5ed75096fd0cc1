// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/tcp/channel.h"

#include <exception>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/transport/tcp/peer.h"

namespace lockstep::transport::tcp {

void TcpChannel::send(const Envelope& envelope, ConstBytes payload) {
  outbox_.send(envelope, payload);
  peer_.enqueue(*this);
}

Bytes TcpChannel::landing(const Envelope&, std::size_t) {
  throw_what_is_wrong();
  return {};
}

void TcpChannel::put(const Envelope&) {
  LOCKSTEP_CHECK(false, "put() without landing()");
}

ConstBytes TcpChannel::view() {
  throw_what_is_wrong();
  return inbox_.view();
}

bool TcpChannel::pump() {
  peer_.pump();
  throw_what_is_wrong();
  return take_progress();
}

void TcpChannel::abandon() {
  abandoned_ = true;
  take_progress();
  outbox_.abandon();
  inbox_.abandon();
  peer_.forget(stream_);
}

void TcpChannel::on_written(std::uint64_t sequence, std::size_t bytes) {
  outbox_.on_written(sequence, bytes);
  mark_progress();
}

Bytes TcpChannel::begin(const FrameHeader& header) {
  const Bytes target = inbox_.begin(header);
  if (inbox_.mismatch()) mark_progress();
  return target;
}

void TcpChannel::on_bytes(const FrameHeader& header, std::size_t bytes, std::size_t so_far) {
  const std::uint64_t done = inbox_.done();
  const std::size_t arrived = inbox_.arrived_bytes();
  inbox_.on_bytes(header, bytes, so_far);
  // A message that nobody waits for yet is no progress that anybody could see.
  if (inbox_.done() != done || inbox_.arrived_bytes() != arrived) mark_progress();
}

void TcpChannel::on_control(const FrameHeader& header, ConstBytes payload) {
  switch (header.type) {
    case FrameType::offer:
      inbox_.on_offer(header);
      break;
    case FrameType::credit:
      outbox_.on_credit(header);
      peer_.enqueue(*this);
      break;
    case FrameType::give_back:
      outbox_.on_give_back(header);
      peer_.enqueue(*this);
      break;
    case FrameType::disagree:
      if (!told_mismatch_) told_mismatch_ = read_disagree(header, payload);
      break;
    default:
      LOCKSTEP_CHECK(false, "not a frame of a channel");
  }
  if (inbox_.mismatch() || outbox_.mismatch() || told_mismatch_) mark_progress();
}

void TcpChannel::mark_progress() {
  if (moved_ || abandoned_) return;
  moved_ = true;
  ++progress_.channels;
  progress_.told = false;
}

bool TcpChannel::take_progress() {
  if (!moved_) return false;
  moved_ = false;
  --progress_.channels;
  return true;
}

void TcpChannel::throw_what_is_wrong() const {
  if (abandoned_) return;
  if (inbox_.mismatch()) throw EnvelopeMismatch(*inbox_.mismatch());
  if (outbox_.mismatch()) throw EnvelopeMismatch(*outbox_.mismatch());
  if (told_mismatch_) throw EnvelopeMismatch(*told_mismatch_);
  if (peer_.closing_error()) std::rethrow_exception(peer_.closing_error());
}

}  // namespace lockstep::transport::tcp
