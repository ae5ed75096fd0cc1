// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/tcp/peer.h"

#include <algorithm>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::transport::tcp {
namespace {

// Without what it should say when there is no memory for it.
std::exception_ptr protocol_broken(Rank rank, const DataError& error) try {
  return std::make_exception_ptr(
      DataError(fmt::format("rank {} broke the protocol: {}", rank, error.what())));
} catch (const std::bad_alloc&) {
  return std::current_exception();
}

}  // namespace

Peer::Peer(Rank rank, std::uint64_t generation, BlockPools& pools, Progress& progress)
    : rank_(rank), generation_(generation), pools_(pools), progress_(progress) {}

void Peer::add_link(std::unique_ptr<Connection> connection) {
  links_.emplace_back(std::move(connection), generation_);
}

bool Peer::pump() {
  bool moved = flush();
  const std::size_t ready_before = ready_.size();
  try {
    for (Link& link : links_) moved |= link.read(*this);
  } catch (const DataError& error) {
    close_links(protocol_broken(rank_, error));
  } catch (const std::bad_alloc&) {
    close_links(std::current_exception());  // a frame that was half taken cannot be taken again
  }
  // What has just been read may be what we waited for, or call for an answer.
  if (!control_.empty() || ready_.size() > ready_before) moved |= flush();
  return moved;
}

bool Peer::flush() {
  if (stopped_writing_) {
    control_.clear();
    return false;
  }
  bool moved = false;
  try {
    for (Link& link : links_) moved |= link.write(*this);
  } catch (const std::bad_alloc&) {
    close_links(std::current_exception());  // a frame that its channel has issued is lost
  }
  return moved;
}

void Peer::close_links(std::exception_ptr why) {
  closing_error_ = std::move(why);
  for (Link& link : links_) link.close();
}

bool Peer::has_output() const {
  return !stopped_writing_ &&
         (!control_.empty() || !ready_.empty() ||
          std::any_of(links_.begin(), links_.end(), [](const Link& link) { return link.has_output(); }));
}

bool Peer::owes_failure() const {
  const bool is_reachable = !stopped_writing_ && std::any_of(links_.begin(), links_.end(),
                                                             [](const Link& link) { return link.is_open(); });
  return is_reachable &&
         (std::any_of(control_.begin(), control_.end(),
                      [](const ControlFrame& frame) { return frame.header.type == FrameType::failure; }) ||
          std::any_of(links_.begin(), links_.end(), [](const Link& link) { return link.owes_failure(); }));
}

bool Peer::is_connected() const {
  return std::all_of(links_.begin(), links_.end(), [](const Link& link) { return link.is_open(); });
}

void Peer::send_notice(StreamId stream, std::uint64_t index, const NoticeHead& head) {
  const FrameHeader header{.type = FrameType::notice,
                           .stream = stream,
                           .length = static_cast<std::uint32_t>(head.size()),
                           .sequence = index};
  const auto waiting = std::find_if(control_.begin(), control_.end(), [&](const ControlFrame& frame) {
    return frame.header.type == FrameType::notice && frame.header.stream == stream;
  });
  ControlFrame frame{.header = header, .payload = {head.begin(), head.end()}};
  if (waiting != control_.end()) {
    *waiting = std::move(frame);
  } else {
    send_control(std::move(frame));
  }
  flush();
}

void Peer::send_failure(StreamId stream, std::string_view why) {
  const ConstBytes text = std::as_bytes(std::span(why.substr(0, kMaxFailureText)));
  send_control({.header = {.type = FrameType::failure,
                           .stream = stream,
                           .length = static_cast<std::uint32_t>(text.size())},
                .payload = {text.begin(), text.end()}});
  flush();
}

void Peer::send_control(ControlFrame frame) {
  if (!stopped_writing_) control_.push_back(std::move(frame));
}

void Peer::abandon_all() {
  for (const auto& channel : channels_) {
    if (channel != nullptr) channel->abandon();
  }
}

void Peer::enqueue(TcpChannel& channel) {
  if (std::exchange(channel.is_queued, true)) return;
  ready_.push_back(&channel);
}

void Peer::forget(StreamId stream) {
  try {
    for (Link& link : links_) link.forget(stream);
  } catch (const std::bad_alloc&) {
    close_links(std::current_exception());  // half a frame cannot be left out
  }
}

std::optional<OutgoingFrame> Peer::next_frame() {
  // Asking a channel may append an offer to the control frames, so these are looked at again after it.
  while (control_.empty() && !ready_.empty()) {
    TcpChannel& channel = *ready_.front();
    ready_.pop_front();
    channel.is_queued = false;
    const std::optional<PayloadFrame> frame = channel.next_frame();
    if (!frame) continue;
    enqueue(channel);
    return OutgoingFrame{.header = encode(frame->header, generation_),
                         .payload = frame->payload,
                         .owned = {},
                         .counted = true,
                         .stream = frame->header.stream,
                         .sequence = frame->header.sequence};
  }
  if (control_.empty()) return std::nullopt;
  ControlFrame frame = std::move(control_.front());
  control_.pop_front();
  OutgoingFrame outgoing{
      .header = encode(frame.header, generation_), .payload = {}, .owned = std::move(frame.payload)};
  outgoing.reports_failure = frame.header.type == FrameType::failure;
  outgoing.payload = outgoing.owned;
  return outgoing;
}

void Peer::on_written(StreamId stream, std::uint64_t sequence, std::size_t bytes) {
  channel_at(stream).on_written(sequence, bytes);
}

Bytes Peer::begin(const FrameHeader& header) {
  return channel_at(header.stream).begin(header);
}

void Peer::on_bytes(const FrameHeader& header, std::size_t bytes, std::size_t so_far) {
  channel_at(header.stream).on_bytes(header, bytes, so_far);
}

void Peer::on_control(const FrameHeader& header, ConstBytes payload) {
  switch (header.type) {
    case FrameType::notice: {
      NoticeHead head;
      std::copy(payload.begin(), payload.end(), head.begin());
      return notices_.add(header.stream, header.sequence, head);
    }
    case FrameType::failure:
      return notices_.add_failure(header.stream,
                                  {reinterpret_cast<const char*>(payload.data()), payload.size()});
    case FrameType::bind:
      throw DataError("bad frame: a second bind on a link");
    default:
      return channel_at(header.stream).on_control(header, payload);
  }
}

TcpChannel& Peer::channel_at(StreamId stream) {
  LOCKSTEP_CHECK(stream < kMaxStreams);
  std::unique_ptr<TcpChannel>& channel = channels_[stream];
  if (channel == nullptr) {
    channel = std::make_unique<TcpChannel>(*this, stream, control_, pools_, progress_);
  }
  return *channel;
}

}  // namespace lockstep::transport::tcp
