// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/control_channel.h"

#include <array>
#include <span>
#include <utility>

#include <poll.h>

#include "lockstep/base/error.h"

namespace lockstep::elastic {
namespace {

using transport::Connection;

constexpr int kMostReads = 16;  // at a time, so that others get their turn

}  // namespace

short ControlChannel::events() const {
  return output_.empty() && !reading_awaits_write_ ? POLLIN : POLLIN | POLLOUT;
}

void ControlChannel::lost() const {
  throw PeerLost(connection_->close_reason());
}

void ControlChannel::send(std::vector<std::byte> message) {
  if (is_closed_) lost();
  if (queued_ + message.size() > kMaxQueued) throw PeerLost("it does not read what it is sent");
  queued_ += message.size();
  output_.push_back(std::move(message));
  flush();
}

void ControlChannel::flush() {
  while (!output_.empty()) {
    const ConstBytes rest = ConstBytes(output_.front()).subspan(sent_);
    const std::ptrdiff_t put = connection_->try_write(std::span(&rest, 1));
    if (put == Connection::kWouldBlock) return;
    if (put == Connection::kClosed) {
      is_closed_ = true;
      lost();
    }
    sent_ += static_cast<std::size_t>(put);
    if (sent_ < output_.front().size()) continue;
    queued_ -= output_.front().size();
    output_.pop_front();
    sent_ = 0;
  }
}

bool ControlChannel::read_some() {
  std::array<std::byte, 16'384> buffer;
  const std::ptrdiff_t got = connection_->try_read(buffer);
  reading_awaits_write_ =
      got == Connection::kWouldBlock && connection_->awaits() == transport::Readiness::write;
  is_closed_ |= got == Connection::kClosed;
  if (got <= 0) return false;
  input_.insert(input_.end(), buffer.begin(), buffer.begin() + got);
  return true;
}

std::vector<ControlChannel::Received> ControlChannel::receive() {
  int reads = 0;
  while (reads < kMostReads && !is_closed_ && read_some()) ++reads;
  has_more_ = reads == kMostReads;
  std::vector<Received> messages;
  std::size_t at = 0;
  while (input_.size() - at >= kHeaderBytes) {
    const ConstBytes rest = ConstBytes(input_).subspan(at);
    const Header header = decode_header(rest.first(kHeaderBytes), peer_);
    if (rest.size() - kHeaderBytes < header.body_bytes) break;
    const ConstBytes body = rest.subspan(kHeaderBytes, header.body_bytes);
    messages.push_back({header.type, {body.begin(), body.end()}});
    at += kHeaderBytes + header.body_bytes;
  }
  input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(at));
  if (messages.empty() && is_closed_) lost();
  return messages;
}

}  // namespace lockstep::elastic
