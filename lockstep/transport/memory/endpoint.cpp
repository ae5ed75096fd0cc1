// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/memory/endpoint.h"

#include "lockstep/base/error.h"

namespace lockstep::transport {

MemoryEndpoint::MemoryEndpoint(Rank rank, int world, ControlBlock& mine, Doorbell& doorbell)
    : rank_(rank),
      world_(world),
      mine_(mine),
      doorbell_(doorbell),
      peers_(static_cast<std::size_t>(world)),
      channels_(static_cast<std::size_t>(world) * kMaxStreams) {}

void MemoryEndpoint::add_peer(Rank peer, const ControlBlock& control, int bell_fd) {
  peers_[peer].emplace(Peer{.control = &control, .bell = Bell(control.sleeping, bell_fd)});
}

MemoryEndpoint::Peer& MemoryEndpoint::peer_at(Rank peer) {
  LOCKSTEP_CHECK(peer >= 0 && peer < world_ && peers_[peer]);
  return *peers_[peer];
}

Channel& MemoryEndpoint::channel(Rank peer, StreamId stream) {
  LOCKSTEP_CHECK(peer >= 0 && peer < world_ && peer != rank_ && stream < kMaxStreams);
  std::unique_ptr<MemoryChannel>& slot = channels_[static_cast<std::size_t>(peer) * kMaxStreams + stream];
  if (!slot) {
    const Blocks words = blocks(peer, stream);
    slot = std::make_unique<MemoryChannel>(words.mine, words.theirs, space(peer), peer_at(peer).bell);
    active_.push_back(slot.get());
  }
  return *slot;
}

void MemoryEndpoint::publish(StreamId stream, std::uint64_t index, const NoticeHead& head) {
  LOCKSTEP_CHECK(stream < kMaxStreams);
  publish_notice(mine_.streams[stream], index, head);
}

void MemoryEndpoint::fail(StreamId stream, std::string_view why) {
  LOCKSTEP_CHECK(stream < kMaxStreams);
  if (!publish_failure(mine_.streams[stream], why)) return;
  mine_.failures.store(mine_.failures.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  ring_all();
}

void MemoryEndpoint::ring_all() {
  for (std::optional<Peer>& peer : peers_) {
    if (peer) peer->bell.ring();
  }
}

const StreamNotices& MemoryEndpoint::board(Rank peer, StreamId stream) const {
  LOCKSTEP_CHECK(peer >= 0 && peer < world_ && stream < kMaxStreams);
  return peer == rank_ ? mine_.streams[stream] : peers_[peer]->control->streams[stream];
}

std::uint64_t MemoryEndpoint::notices_of(Rank peer, StreamId stream) {
  return notices_on(board(peer, stream));
}

std::optional<NoticeHead> MemoryEndpoint::notice_of(Rank peer, StreamId stream, std::uint64_t index) {
  return read_notice(board(peer, stream), index);
}

std::optional<std::string> MemoryEndpoint::failure_of(Rank peer, StreamId stream) {
  return read_failure(board(peer, stream));
}

bool MemoryEndpoint::has_news() {
  for (const MemoryChannel* channel : active_) {
    if (channel->has_news()) return true;
  }
  for (std::optional<Peer>& peer : peers_) {
    if (!peer) continue;
    const std::uint64_t failures = peer->control->failures.load(std::memory_order_acquire);
    if (std::exchange(peer->failures_seen, failures) != failures) return true;
  }
  return has_other_news();
}

bool MemoryEndpoint::prepare_wait() {
  if (has_news()) return false;
  doorbell_.arm();
  return !has_news();
}

void MemoryEndpoint::finish_wait() {
  if (!doorbell_.armed()) return;
  doorbell_.disarm();
  if (!doorbell_.drain()) handle_other_events();
}

}  // namespace lockstep::transport
