// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/mpi/notices.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "lockstep/base/bytes.h"
#include "lockstep/base/log.h"

namespace lockstep::transport::mpi {

void NoticeLog::add(std::uint64_t index, const NoticeHead& head) {
  auto& place = newest[index % kNoticeHistory];
  if (!place || place->first <= index) {
    place = std::pair(index, head);
  }
  count = std::max(count, index + 1);
}

std::optional<NoticeHead> NoticeLog::at(std::uint64_t index) const {
  const auto& entry = newest[index % kNoticeHistory];
  if (!entry || entry->first != index) {
    return std::nullopt;
  }
  return entry->second;
}

Notices::Notices(Wire& wire) : wire_(wire), peers_(static_cast<std::size_t>(wire.world())) {
  listen();
}

void Notices::publish(StreamId stream, std::uint64_t index, const NoticeHead& head) {
  own_[stream].add(index, head);
}

void Notices::push(Rank peer, StreamId stream) {
  const NoticeLog& log = own_[stream];
  if (log.count == 0) {
    return;
  }
  const ControlFrame frame{.kind = ControlKind::notice,
                           .stream = stream,
                           .index = log.count - 1,
                           .head = log.at(log.count - 1).value_or(NoticeHead{})};
  std::deque<ControlFrame>& waiting = peers_[peer].waiting;
  const auto older = std::find_if(waiting.begin(), waiting.end(), [&](const ControlFrame& other) {
    return other.kind == ControlKind::notice && other.stream == stream;
  });
  if (older != waiting.end()) {
    *older = frame;
  } else {
    waiting.push_back(frame);
  }
  send_next(peer);
}

void Notices::fail(StreamId stream, std::string_view why) {
  NoticeLog& log = own_[stream];
  if (log.failure) {
    return;
  }
  any_failure_ = true;
  log.failure = why.substr(0, kMaxFailureText);
  ControlFrame frame{.kind = ControlKind::failure, .stream = stream, .text_bytes = log.failure->size()};
  std::copy(log.failure->begin(), log.failure->end(), frame.text.begin());
  for (Rank peer = 0; peer < wire_.world(); ++peer) {
    peers_[peer].waiting.push_front(frame);
    send_next(peer);
  }
}

void Notices::say_goodbye() {
  for (Rank peer = 0; peer < wire_.world(); ++peer) {
    peers_[peer].waiting.push_back({.kind = ControlKind::goodbye});
    send_next(peer);
  }
}

const NoticeLog& Notices::heard(Rank peer, StreamId stream) const {
  static const NoticeLog kNothing;
  const auto& logs = peers_[peer].logs;
  const auto found = logs.find(stream);
  return found == logs.end() ? kNothing : found->second;
}

void Notices::note(Rank peer, StreamId stream, std::uint64_t index, const NoticeHead& head) {
  peers_[peer].logs[stream].add(index, head);
}

bool Notices::progress() {
  for (Rank peer = 0; peer < wire_.world(); ++peer) {
    send_next(peer);
  }
  bool heard_something = false;
  while (listening_) {
    const Outcome outcome = wire_.test(*listening_);
    if (outcome.state == State::pending) {
      break;
    }
    listening_.reset();
    if (outcome.state == State::done) {
      take(outcome.from, outcome.bytes);
      listen();
      heard_something = true;
    }
  }
  return heard_something;
}

bool Notices::owes_failure() const {
  const auto reports = [](const ControlFrame& frame) { return frame.kind == ControlKind::failure; };
  return std::any_of(peers_.begin(), peers_.end(), [&](const Peer& peer) {
    return std::any_of(peer.waiting.begin(), peer.waiting.end(), reports);
  });
}

bool Notices::flushed() const {
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const Peer& peer) { return peer.waiting.empty() && !peer.transfer; });
}

bool Notices::close() {
  const auto settle = [this](std::optional<Transfer>& transfer) {
    if (transfer && wire_.test(*transfer).state == State::pending) {
      wire_.cancel(*transfer);
      return false;
    }
    transfer.reset();
    return true;
  };
  bool over = settle(listening_);
  for (Peer& peer : peers_) {
    peer.waiting.clear();
    over &= settle(peer.transfer);
  }
  return over;
}

void Notices::send_next(Rank rank) {
  Peer& peer = peers_[rank];
  if (peer.transfer && wire_.test(*peer.transfer).state != State::pending) {
    peer.transfer.reset();
  }
  if (rank == wire_.rank()) {
    peer.waiting.clear();
  }
  if (!peer.transfer && !peer.waiting.empty()) {
    peer.departing = peer.waiting.front();
    peer.waiting.pop_front();
    peer.transfer = wire_.send(rank, kControlTag, as_bytes_of(peer.departing));
  }
}

void Notices::listen() {
  listening_ = wire_.receive(kAnyRank, kControlTag, as_writable_bytes_of(arriving_));
}

void Notices::take(Rank from, std::size_t bytes) {
  if (bytes != sizeof(arriving_) || arriving_.magic != ControlFrame::kMagic ||
      arriving_.version != kFrameVersion || arriving_.stream >= kMaxStreams ||
      arriving_.text_bytes > kMaxFailureText) {
    log::error(
        fmt::format("mpi: rank {} sent {} bytes that are no control frame of version {}; it counts as lost",
                    from, bytes, kFrameVersion));
    peers_[from].gone = true;
    return;
  }
  Peer& peer = peers_[from];
  NoticeLog& log = peer.logs[arriving_.stream];
  switch (arriving_.kind) {
    case ControlKind::notice:
      log.add(arriving_.index, arriving_.head);
      break;
    case ControlKind::failure:
      log.failure = std::string(arriving_.text.data(), arriving_.text_bytes);
      any_failure_ = true;
      break;
    case ControlKind::goodbye:
      peer.gone = true;
      break;
  }
}

}  // namespace lockstep::transport::mpi
