// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/mpi/channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::transport::mpi {
namespace {

int tag_of(StreamId stream) {
  return static_cast<int>(stream);
}

std::size_t frames_of(std::size_t bytes) {
  return (bytes + kFramePayload - 1) / kFramePayload;
}

DataHeader header_of(const Frame& frame) {
  DataHeader header;
  std::memcpy(&header, frame.all().data(), sizeof(header));
  return header;
}

}  // namespace

MpiChannel::MpiChannel(Station& station, bool& peer_gone, Rank peer, StreamId stream)
    : station_(station), peer_gone_(peer_gone), peer_(peer), stream_(stream) {}

void MpiChannel::send(const Envelope& envelope, ConstBytes payload) {
  if (!abandoned_) {
    outgoing_.push_back({envelope, payload});
  }
}

void MpiChannel::put(const Envelope&) {
  LOCKSTEP_CHECK(false, "put() without a landing: the mpi transport never gives one");
}

void MpiChannel::receive(const Envelope& envelope, Bytes into) {
  expect(envelope, into.size(), into.data());
}

void MpiChannel::receive_view(const Envelope& envelope, std::size_t bytes) {
  expect(envelope, bytes, nullptr);
}

void MpiChannel::expect(const Envelope& envelope, std::size_t bytes, std::byte* into) {
  if (!abandoned_) {
    expected_.push_back({envelope, bytes, into});
    frames_to_post_ += frames_of(bytes);
  }
}

ConstBytes MpiChannel::view() {
  if (expected_.empty() || expected_.front().into != nullptr || !front_arrived()) {
    return {};
  }
  return front_payload().subspan(taken_);
}

void MpiChannel::consume(std::size_t bytes) {
  take(bytes);
}

std::size_t MpiChannel::received_bytes() const {
  if (expected_.empty()) {
    return 0;
  }
  const Expected& message = expected_.front();
  if (arriving_.empty() || !arriving_.front().arrived) {
    return message.done;
  }
  const DataHeader header = header_of(arriving_.front().frame);
  return message.agrees(header) ? message.done + header.payload_bytes - taken_ : message.done;
}

bool MpiChannel::pump() {
  const bool moved = abandoned_ ? drop_arrivals() : pump_incoming();
  const bool sent = pump_outgoing();
  station_.moved |= moved || sent;
  return moved || sent;
}

void MpiChannel::abandon() {
  abandoned_ = true;
  outgoing_.clear();
  expected_.clear();
  frames_to_post_ = 0;
}

bool MpiChannel::close() {
  abandon();
  const auto settle = [this](std::deque<UnderWay>& transfers) {
    std::erase_if(transfers, [this](UnderWay& one) {
      return one.arrived || station_.wire.test(one.transfer).state != State::pending;
    });
    for (UnderWay& one : transfers) {
      station_.wire.cancel(one.transfer);
    }
    return transfers.empty();
  };
  const bool nothing_departs = settle(departing_);
  return settle(arriving_) && nothing_departs;
}

bool MpiChannel::pump_outgoing() {
  bool moved = false;
  while (!departing_.empty()) {
    const Outcome outcome = station_.wire.test(departing_.front().transfer);
    if (outcome.state == State::pending) {
      break;
    }
    const bool failed = outcome.state == State::failed;
    peer_gone_ |= failed;
    // Only now, although the payload was copied long ago: MPI moves bytes while we call it, and a caller
    // whose sends are done may stop calling. What failed is never done, or that caller would not hear of it.
    sends_done_ += departing_.front().ends_message && !failed ? 1 : 0;
    station_.frames.give_back(std::move(departing_.front().frame));
    departing_.pop_front();
    moved = true;
  }
  while (!outgoing_.empty() && departing_.size() < kWindow && !peer_gone_) {
    start_frame();
    moved = true;
  }
  return moved;
}

void MpiChannel::start_frame() {
  Outgoing& message = outgoing_.front();
  const ConstBytes piece = message.payload.subspan(
      message.offset, std::min(kFramePayload, message.payload.size() - message.offset));
  DataHeader header{.envelope = message.envelope,
                    .message = messages_started_,
                    .message_bytes = message.payload.size(),
                    .offset = message.offset,
                    .payload_bytes = piece.size()};
  const NoticeLog& own = station_.notices.published(stream_);
  if (own.count > 0) {
    header.notices = own.count;
    header.newest_notice = own.at(own.count - 1).value_or(NoticeHead{});
  }
  Frame frame = station_.frames.take();
  std::memcpy(frame.all().data(), &header, sizeof(header));
  std::memcpy(frame.payload().data(), piece.data(), piece.size());
  const Transfer transfer =
      station_.wire.send(peer_, tag_of(stream_), frame.all().first(sizeof(header) + piece.size()));
  message.offset += piece.size();
  const bool ends_message = message.offset == message.payload.size();
  departing_.push_back({.frame = std::move(frame), .transfer = transfer, .ends_message = ends_message});
  if (ends_message) {
    outgoing_.pop_front();
    ++messages_started_;
  }
}

bool MpiChannel::pump_incoming() {
  post_receives();
  bool moved = false;
  while (!expected_.empty() && !arriving_.empty()) {
    const bool known = arriving_.front().arrived;
    if (!front_arrived()) {
      break;
    }
    moved |= !known;
    const ConstBytes payload = front_payload().subspan(taken_);
    const Expected& message = expected_.front();
    if (message.into == nullptr) {
      break;
    }
    std::memcpy(message.into + message.done, payload.data(), payload.size());
    take(payload.size());
    post_receives();
    moved = true;
  }
  return moved;
}

void MpiChannel::post_receives() {
  while (frames_to_post_ > 0 && arriving_.size() < kWindow && !peer_gone_) {
    Frame frame = station_.frames.take();
    const Transfer transfer = station_.wire.receive(peer_, tag_of(stream_), frame.all());
    arriving_.push_back({.frame = std::move(frame), .transfer = transfer});
    --frames_to_post_;
  }
}

bool MpiChannel::front_arrived() {
  if (arriving_.empty()) {
    return false;
  }
  UnderWay& front = arriving_.front();
  if (front.arrived) {
    return true;
  }
  const Outcome outcome = station_.wire.test(front.transfer);
  if (outcome.state == State::failed) {
    peer_gone_ = true;
    arriving_.pop_front();
    return false;
  }
  front.arrived = outcome.state == State::done;
  if (front.arrived && !abandoned_) {
    read_header(front.frame, outcome.bytes);
  }
  return front.arrived;
}

void MpiChannel::read_header(const Frame& frame, std::size_t bytes) {
  const DataHeader header = header_of(frame);
  if (bytes < sizeof(header) || header.magic != DataHeader::kMagic ||
      header.payload_bytes != bytes - sizeof(header)) {
    throw DataError(
        fmt::format("mpi: rank {} sent {} bytes on stream {} that are no data frame", peer_, bytes, stream_));
  }
  if (header.version != kFrameVersion) {
    throw DataError(fmt::format("mpi: rank {} sent version {} of a data frame on stream {}, expected {}",
                                peer_, header.version, stream_, kFrameVersion));
  }
  if (header.notices > 0) {
    station_.notices.note(peer_, stream_, header.notices - 1, header.newest_notice);
  }
}

ConstBytes MpiChannel::front_payload() {
  UnderWay& front = arriving_.front();
  const DataHeader header = header_of(front.frame);
  const Expected& message = expected_.front();
  if (!message.agrees(header)) {
    throw EnvelopeMismatch{.mine = message.envelope,
                           .theirs = header.envelope,
                           .my_bytes = message.bytes,
                           .their_bytes = header.message_bytes};
  }
  const std::size_t begin = message.done - taken_;
  if (header.message != receives_done_ || header.offset != begin ||
      header.payload_bytes != std::min(kFramePayload, message.bytes - begin)) {
    throw DataError(
        fmt::format("mpi: a frame of rank {} on stream {} is message {} offset {} instead of {} and {}",
                    peer_, stream_, header.message, header.offset, receives_done_, begin));
  }
  return front.frame.payload().first(header.payload_bytes);
}

void MpiChannel::take(std::size_t bytes) {
  Expected& message = expected_.front();
  taken_ += bytes;
  message.done += bytes;
  if (taken_ == header_of(arriving_.front().frame).payload_bytes) {
    pop_arrival();
  }
  if (message.done == message.bytes) {
    expected_.pop_front();
    ++receives_done_;
  }
}

void MpiChannel::pop_arrival() {
  station_.frames.give_back(std::move(arriving_.front().frame));
  arriving_.pop_front();
  taken_ = 0;
}

// Keeps one receive posted, so that what the peer still sends is taken and its frames come free.
bool MpiChannel::drop_arrivals() {
  bool moved = false;
  while (!peer_gone_) {
    if (arriving_.empty()) {
      frames_to_post_ = 1;
      post_receives();
    }
    if (!front_arrived()) {
      break;
    }
    pop_arrival();
    moved = true;
  }
  return moved;
}

}  // namespace lockstep::transport::mpi
