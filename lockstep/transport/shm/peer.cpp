// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/shm/peer.h"

#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/transport/connect/socket.h"
#include "lockstep/transport/connect/wire.h"
#include "lockstep/transport/shm/layout.h"
#include "lockstep/transport/shm/passing.h"
#include "lockstep/transport/shm/segment.h"

namespace lockstep::transport {
namespace {

constexpr std::uint32_t kGreetingMagic = 0x4d48534c;
constexpr std::uint32_t kAnnouncementMagic = 0x4d454d4c;
constexpr std::size_t kGreetingBytes = 6 * sizeof(std::uint32_t);
constexpr std::size_t kAnnouncementBytes = 2 * sizeof(std::uint32_t) + sizeof(std::uint64_t);

}  // namespace

ShmPeer::ShmPeer(std::unique_ptr<Connection> connection, const Greeting& mine, Rank peer, Arena& arena,
                 Deadline deadline, const std::stop_token& stop)
    : connection_(std::move(connection)), rank_(peer), arena_(arena) {
  send_greeting(mine, deadline, stop);
  take_greeting(mine, deadline, stop);
}

void ShmPeer::send_greeting(const Greeting& mine, Deadline deadline, const std::stop_token& stop) {
  std::array<std::byte, kGreetingBytes> message;
  WireWriter writer(message);
  writer.put(kGreetingMagic);
  writer.put(kSharedLayoutVersion);
  writer.put(static_cast<std::uint32_t>(sizeof(ChannelBlock)));
  writer.put(static_cast<std::uint32_t>(sizeof(ControlBlock)));
  writer.put(static_cast<std::uint32_t>(mine.rank));
  writer.put(static_cast<std::uint32_t>(mine.world));
  const std::array descriptors = {mine.control_fd, mine.bell_fd};
  Passing outcome = pass(socket(), message, descriptors);
  while (outcome == Passing::would_block && wait_ready(socket(), Readiness::write, deadline, stop)) {
    outcome = pass(socket(), message, descriptors);
  }
  if (outcome == Passing::closed) throw PeerLost(fmt::format("joining over shm: rank {} is gone", rank_));
  if (outcome != Passing::would_block) return;
  if (stop.stop_requested())
    throw Aborted(fmt::format("joining over shm: greeting rank {} was given up", rank_));
  throw Timeout(fmt::format("joining over shm: rank {} does not listen", rank_));
}

void ShmPeer::take_greeting(const Greeting& mine, Deadline deadline, const std::stop_token& stop) {
  std::array<std::byte, kGreetingBytes> message;
  std::vector<Descriptor> descriptors;
  Passing outcome = Passing::would_block;
  while (outcome == Passing::would_block) {
    if (!wait_ready(socket(), Readiness::read, deadline, stop)) {
      if (stop.stop_requested()) {
        throw Aborted(
            fmt::format("joining over shm: waiting for the greeting of rank {} was given up", rank_));
      }
      throw Timeout(fmt::format("joining over shm: rank {} connected but did not greet within {:.1f} s",
                                rank_, std::chrono::duration<double>(deadline.waited()).count()));
    }
    outcome = receive_passed(socket(), message, 2, descriptors);
  }
  if (outcome == Passing::closed) throw PeerLost(fmt::format("joining over shm: rank {} is gone", rank_));
  WireReader reader(message);
  const bool same_layout = reader.get<std::uint32_t>() == kGreetingMagic &&
                           reader.get<std::uint32_t>() == kSharedLayoutVersion &&
                           reader.get<std::uint32_t>() == sizeof(ChannelBlock) &&
                           reader.get<std::uint32_t>() == sizeof(ControlBlock);
  if (!same_layout) {
    throw DataError(
        fmt::format("rank {} lays out shared memory differently; run the same version on all ranks", rank_));
  }
  const auto rank = static_cast<Rank>(reader.get<std::uint32_t>());
  const auto world = static_cast<int>(reader.get<std::uint32_t>());
  if (rank != rank_ || world != mine.world) {
    throw DataError(fmt::format(
        "expected rank {} of {} over shm and met rank {} of {}; start all ranks with the same world", rank_,
        mine.world, rank, world));
  }
  check_segment(descriptors[0].get(), whole_pages(control_segment_bytes(world)));
  control_ = Mapping::of_file(descriptors[0].get(), 0, kControlBytes, Mapping::Access::read);
  row_ = Mapping::of_file(descriptors[0].get(), row_offset(mine.rank), kRowBytes, Mapping::Access::read);
  bell_ = std::move(descriptors[1]);
}

void ShmPeer::announce() {
  while (alive_ && announced_ < arena_.segments()) {
    std::array<std::byte, kAnnouncementBytes> message;
    WireWriter writer(message);
    writer.put(kAnnouncementMagic);
    writer.put(announced_);
    writer.put(static_cast<std::uint64_t>(arena_.segment_bytes(announced_)));
    const std::array descriptors = {arena_.segment_fd(announced_)};
    if (pass(socket(), message, descriptors) != Passing::done) return;
    ++announced_;
  }
}

// False when there is none now. What this process lacks for it puts the peer's memory out of reach: who moves
// messages cannot do more about it than about a peer that breaks the format.
bool ShmPeer::read_announcement() try {
  if (!alive_) return false;
  std::array<std::byte, kAnnouncementBytes> message;
  std::vector<Descriptor> descriptors;
  const Passing outcome = receive_passed(socket(), message, 1, descriptors);
  if (outcome == Passing::closed) alive_ = false;
  if (outcome != Passing::done) return false;
  WireReader reader(message);
  const auto magic = reader.get<std::uint32_t>();
  const auto index = reader.get<std::uint32_t>();
  const auto bytes = reader.get<std::uint64_t>();
  if (magic != kAnnouncementMagic || index != segments_.size() || index >= Arena::kMaxSegments) {
    throw DataError(
        fmt::format("rank {} announced memory segment {} where {} is due", rank_, index, segments_.size()));
  }
  check_segment(descriptors[0].get(), bytes);
  segments_.push_back(Mapping::of_file(descriptors[0].get(), 0, bytes, Mapping::Access::write));
  return true;
} catch (const UsageError& error) {
  throw DataError(fmt::format("memory that rank {} announced is out of reach: {}", rank_, error.what()));
}

void ShmPeer::read_socket() {
  try {
    while (read_announcement()) {
    }
  } catch (const Error& error) {
    log::error(fmt::format("gave up rank {}: {}", rank_, error.what()));
    alive_ = false;
  }
}

std::optional<Place> ShmPeer::expose(ConstBytes memory) {
  const std::optional<Place> place = arena_.locate(memory);
  if (!place) return std::nullopt;
  if (place->segment >= announced_) announce();
  return place->segment < announced_ ? place : std::nullopt;
}

std::byte* ShmPeer::resolve(Place place, std::size_t bytes) {
  // A segment is announced before it is first named, so the announcement is in the socket already.
  while (place.segment >= segments_.size() && read_announcement()) {
  }
  if (place.segment >= segments_.size()) {
    throw DataError(
        fmt::format("rank {} refers to memory segment {} of {}", rank_, place.segment, segments_.size()));
  }
  const Mapping& segment = segments_[place.segment];
  if (place.offset > segment.size() || bytes > segment.size() - place.offset) {
    throw DataError(fmt::format("rank {} refers to {} bytes at {} of a memory segment of {} bytes", rank_,
                                bytes, place.offset, segment.size()));
  }
  return segment.data() + place.offset;
}

}  // namespace lockstep::transport
