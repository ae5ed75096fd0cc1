// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/tcp/link.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/transport/tcp/limits.h"
#include "lockstep/transport/tcp/peer.h"

namespace lockstep::transport::tcp {
namespace {

// Frames that one system call may write, and when a batch is large enough.
constexpr std::size_t kBatchFrames = 16;
constexpr std::size_t kBatchBytes = std::size_t{1024} * 1024;

// What one call of read() or write() moves at most (roughly), so that both directions and all peers flow and
// the consumer finds the bytes in its cache.
constexpr std::size_t kBytesPerTurn = std::size_t{1024} * 1024;

// Holds a header and the largest eager message, several of the usual ones.
constexpr std::size_t kBufferBytes = kHeaderBytes + 2 * kEagerBytes;

bool carries_message(FrameType type) {
  return type == FrameType::eager || type == FrameType::data;
}

}  // namespace

Link::Link(std::unique_ptr<Connection> connection, std::uint64_t generation)
    : connection_(std::move(connection)), generation_(generation), buffer_(kBufferBytes) {
  batch_.reserve(kBatchFrames);
}

void Link::close() {
  connection_.reset();
  batch_.clear();
  header_.reset();
}

bool Link::owes_failure() const {
  return std::any_of(batch_.begin(), batch_.end(),
                     [](const OutgoingFrame& frame) { return frame.reports_failure; });
}

// --- Writing.

bool Link::write(Peer& peer) {
  std::size_t total = 0;
  while (is_open() && total < kBytesPerTurn) {
    if (batch_.empty()) fill_batch(peer);
    if (batch_.empty()) break;

    std::array<ConstBytes, 2 * kBatchFrames> pieces;
    std::size_t count = 0;
    std::size_t asked = 0;
    std::size_t skip = batch_written_;
    const auto add = [&](ConstBytes piece) {
      const std::size_t skipped = std::min(skip, piece.size());
      skip -= skipped;
      if (skipped == piece.size()) return;
      pieces[count++] = piece.subspan(skipped);
      asked += piece.size() - skipped;
    };
    for (const OutgoingFrame& frame : batch_) {
      add(frame.header);
      add(frame.payload);
    }
    const std::ptrdiff_t put = connection_->try_write(std::span(pieces).first(count));
    if (put < 0) {
      // What the peer sent before its end is still to be read; reading will find that end.
      blocked_ = put == Connection::kWouldBlock;
      if (put == Connection::kClosed) peer.stop_writing();
      break;
    }
    total += static_cast<std::size_t>(put);
    advance_batch(peer, static_cast<std::size_t>(put));
    blocked_ = static_cast<std::size_t>(put) < asked;
    if (blocked_) break;
  }
  return total > 0;
}

void Link::fill_batch(Peer& peer) {
  std::size_t bytes = 0;
  batch_written_ = 0;
  while (batch_.size() < kBatchFrames && bytes < kBatchBytes) {
    std::optional<OutgoingFrame> frame = peer.next_frame();
    if (!frame) break;
    bytes += kHeaderBytes + frame->payload.size();
    batch_.push_back(std::move(*frame));
  }
}

void Link::advance_batch(Peer& peer, std::size_t bytes) {
  batch_written_ += bytes;
  std::size_t end = 0;
  for (OutgoingFrame& frame : batch_) {
    end += kHeaderBytes + frame.payload.size();
    if (end > batch_written_) continue;
    frame.reports_failure = false;
    // Once told, its sender may free the payload.
    if (std::exchange(frame.counted, false)) {
      peer.on_written(frame.stream, frame.sequence, frame.payload.size());
    }
  }
  if (batch_written_ == end) batch_.clear();
}

// --- Reading.

bool Link::read(Peer& peer) {
  std::size_t total = 0;
  while (is_open() && total < kBytesPerTurn) {
    std::size_t asked = 0;
    const std::ptrdiff_t got = fill(asked);
    if (got == Connection::kWouldBlock) break;
    if (got == Connection::kClosed) {
      close();
      break;
    }
    total += static_cast<std::size_t>(got);
    take_received(peer, static_cast<std::size_t>(got));
    // The socket is empty: asking again would only cost a system call.
    if (static_cast<std::size_t>(got) < asked) break;
  }
  return total > 0;
}

// Reads payload to its place; anything else into the buffer. Between the segments of a large message that is
// just the next header, so that no payload has to be copied out of the buffer.
std::ptrdiff_t Link::fill(std::size_t& asked) {
  Bytes into;
  if (reads_in_place()) {
    into = target_.subspan(payload_done_);
  } else {
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= std::exchange(begin_, 0);
    }
    const bool header_only = expects_segment_ && !header_;
    into = Bytes(buffer_).first(header_only ? kHeaderBytes : buffer_.size()).subspan(end_);
  }
  asked = into.size();
  return connection_->try_read(into);
}

void Link::take_received(Peer& peer, std::size_t bytes) {
  if (reads_in_place()) return take_payload(peer, bytes);
  end_ += bytes;
  parse_buffered(peer);
}

void Link::parse_buffered(Peer& peer) {
  while (is_open() && begin_ < end_) {
    if (!header_) {
      if (end_ - begin_ < kHeaderBytes) return;
      begin_frame(peer);
      continue;
    }
    const std::size_t taken = std::min(payload_left(), end_ - begin_);
    if (!target_.empty()) {
      std::memcpy(target_.data() + payload_done_, buffer_.data() + begin_, taken);
    }
    begin_ += taken;
    take_payload(peer, taken);
  }
}

void Link::begin_frame(Peer& peer) {
  const std::span<const std::byte, kHeaderBytes> bytes(buffer_.data() + begin_, kHeaderBytes);
  const FrameHeader header = decode(bytes, generation_);
  begin_ += kHeaderBytes;
  expects_segment_ = header.type == FrameType::data && header.offset + header.length < header.total;
  if (header.length == 0) return peer.on_control(header, {});
  target_ = carries_message(header.type) ? peer.begin(header) : Bytes(control_).first(header.length);
  header_ = header;
  payload_done_ = 0;
}

void Link::take_payload(Peer& peer, std::size_t bytes) {
  payload_done_ += bytes;
  const FrameHeader header = *header_;
  if (payload_done_ == header.length) header_.reset();
  if (carries_message(header.type)) {
    if (!target_.empty()) peer.on_bytes(header, bytes, payload_done_);
  } else if (!header_) {
    peer.on_control(header, target_);
  }
}

void Link::forget(StreamId stream) {
  if (header_ && carries_message(header_->type) && header_->stream == stream) target_ = {};
  for (OutgoingFrame& frame : batch_) {
    if (!frame.counted || frame.stream != stream) continue;
    frame.counted = false;
    frame.owned.assign(frame.payload.begin(), frame.payload.end());
    frame.payload = frame.owned;
  }
}

}  // namespace lockstep::transport::tcp
