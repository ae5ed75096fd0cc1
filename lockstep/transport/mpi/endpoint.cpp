// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/mpi/endpoint.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <new>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/transport/mpi/channel.h"
#include "lockstep/transport/mpi/nap.h"
#include "lockstep/transport/mpi/notices.h"
#include "lockstep/transport/mpi/wire.h"

namespace lockstep::transport {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::microseconds kShortestNap{200};
constexpr std::chrono::microseconds kLongestNap{1000};
constexpr std::chrono::milliseconds kFarewellAfterFailure{5000};
constexpr std::align_val_t kAlignment{64};

struct Free {
  void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
};
using Memory = std::unique_ptr<std::byte, Free>;

// What MPI may still be using when an endpoint ends. Destroyed only if it has let go of all of it.
struct Machinery {
  explicit Machinery(Deadline deadline)
      : wire(mpi::open_wire(deadline)),
        notices(*wire),
        station{.wire = *wire, .notices = notices},
        peer_gone(static_cast<std::size_t>(wire->world()), 0) {}

  std::map<std::byte*, Memory> memory;  // all that allocate() gave and release() did not take back
  std::unique_ptr<mpi::Wire> wire;
  mpi::Notices notices;
  mpi::Station station;
  std::deque<bool> peer_gone;  // as MPI reports; a deque: channels refer to its elements
  std::map<std::pair<Rank, StreamId>, mpi::MpiChannel> channels;

  bool progress();
  bool data_flushed() const;
  bool broken() const;
  bool close();
};

// Control frames, and channels that nobody pumps any more.
bool Machinery::progress() {
  bool moved = std::exchange(station.moved, false);
  for (auto& [key, channel] : channels) {
    if (channel.abandoned()) {
      moved |= channel.pump();
    }
  }
  return notices.progress() || moved;
}

// What a peer that has left did not take, it never will.
bool Machinery::data_flushed() const {
  return std::all_of(channels.begin(), channels.end(), [this](const auto& entry) {
    return entry.second.flushed() || notices.said_goodbye(entry.first.first);
  });
}

bool Machinery::broken() const {
  return notices.any_failure() ||
         std::any_of(peer_gone.begin(), peer_gone.end(), [](bool gone) { return gone; }) ||
         std::any_of(channels.begin(), channels.end(),
                     [](const auto& entry) { return entry.second.abandoned(); });
}

bool Machinery::close() {
  bool closed = notices.close();
  for (auto& [key, channel] : channels) {
    closed &= channel.close();
  }
  return closed;
}

class MpiEndpoint final : public Endpoint {
 public:
  explicit MpiEndpoint(const MpiOptions& options)
      : options_(options), machinery_(std::make_unique<Machinery>(Deadline::after(options.start_timeout))) {}
  ~MpiEndpoint() override;

  Rank rank() const override { return machinery_->wire->rank(); }
  int world() const override { return machinery_->wire->world(); }
  std::string_view kind(Rank) const override { return "mpi"; }
  bool shares_host(Rank peer) const override { return machinery_->wire->shares_host(peer); }
  Channel& channel(Rank peer, StreamId stream) override;

  Bytes allocate(std::size_t bytes) override;
  void release(Bytes memory) override;

  void publish(StreamId stream, std::uint64_t index, const NoticeHead& head) override {
    machinery_->notices.publish(stream, index, head);
  }
  void fail(StreamId stream, std::string_view why) override { machinery_->notices.fail(stream, why); }
  void pass_on_failures(Deadline deadline) override;
  void push_notice(Rank peer, StreamId stream) override { machinery_->notices.push(peer, stream); }
  std::uint64_t notices_of(Rank peer, StreamId stream) override { return heard(peer, stream).count; }
  std::optional<NoticeHead> notice_of(Rank peer, StreamId stream, std::uint64_t index) override {
    return heard(peer, stream).at(index);
  }
  std::optional<std::string> failure_of(Rank peer, StreamId stream) override {
    return heard(peer, stream).failure;
  }
  bool alive(Rank peer) override;

  bool prepare_wait() override;
  int wait_fd() const override { return nap_.fd(); }
  void finish_wait() override { nap_.end(); }
  void wake() override { nap_.wake(); }

 private:
  const mpi::NoticeLog& heard(Rank peer, StreamId stream);
  bool leave_in_order();

  MpiOptions options_;
  std::unique_ptr<Machinery> machinery_;
  mpi::Nap nap_;
  std::chrono::microseconds next_nap_ = kShortestNap;
};

// Calls `step` until it is true; false at the deadline.
template <typename Step>
bool repeat(Deadline deadline, Step step) {
  while (!step()) {
    if (deadline.passed()) {
      return false;
    }
    std::this_thread::sleep_for(kShortestNap);
  }
  return true;
}

// For a destructor.
void warn_of(const std::exception& error) noexcept try {
  log::warning(fmt::format("mpi: this rank leaves without MPI_Finalize: {}", error.what()));
} catch (const std::exception&) {
  // There is nobody to be told.
}

MpiEndpoint::~MpiEndpoint() {
  try {
    if (leave_in_order()) {
      machinery_->wire->finish();
      return;
    }
    log::warning("mpi: some ranks did not leave in order, so this rank leaves without MPI_Finalize");
  } catch (const std::bad_alloc&) {
    // A warning would need memory too. Peers wait for this rank until their deadline.
  } catch (const std::exception& error) {
    warn_of(error);
  }
  // MPI goes on using this memory for as long as the process lives.
  static_cast<void>(machinery_.release());
}

// Peers listen until all ranks have left, so whoever leaves in order gets rid of everything it has to say.
bool MpiEndpoint::leave_in_order() {
  Machinery& all = *machinery_;
  const Deadline farewell = Deadline::after(all.broken() ? kFarewellAfterFailure : options_.farewell_timeout);
  for (auto& [key, channel] : all.channels) {
    channel.abandon();
  }
  bool orderly = repeat(farewell, [&] { return all.progress(), all.data_flushed(); });
  all.notices.say_goodbye();
  orderly = repeat(farewell, [&] { return all.progress(), all.notices.flushed(); }) && orderly;
  orderly = orderly && repeat(farewell, [&] { return all.progress(), all.wire->leave(); });
  return orderly && repeat(Deadline::after(kFarewellAfterFailure), [&] { return all.close(); });
}

// The reports leave if the peers take what was sent to them before.
void MpiEndpoint::pass_on_failures(Deadline deadline) {
  repeat(deadline, [this] { return machinery_->progress(), !machinery_->notices.owes_failure(); });
}

Channel& MpiEndpoint::channel(Rank peer, StreamId stream) {
  LOCKSTEP_CHECK(peer >= 0 && peer < world() && peer != rank() && stream < kMaxStreams,
                 fmt::format("no channel to rank {} on stream {}", peer, stream));
  Machinery& all = *machinery_;
  return all.channels.try_emplace({peer, stream}, all.station, all.peer_gone[peer], peer, stream)
      .first->second;
}

Bytes MpiEndpoint::allocate(std::size_t bytes) {
  if (bytes == 0) return {};
  Memory memory(static_cast<std::byte*>(::operator new(bytes, kAlignment, std::nothrow)));
  if (!memory) {
    throw UsageError(
        fmt::format("mpi: no room for a buffer of {} bytes; the system is out of memory", bytes));
  }
  std::byte* const address = memory.get();
  std::memset(address, 0, bytes);
  machinery_->memory.emplace(address, std::move(memory));
  return {address, bytes};
}

void MpiEndpoint::release(Bytes memory) {
  if (memory.empty()) return;
  LOCKSTEP_CHECK(machinery_->memory.erase(memory.data()) == 1, "release() of what allocate() did not return");
}

const mpi::NoticeLog& MpiEndpoint::heard(Rank peer, StreamId stream) {
  machinery_->progress();
  return machinery_->notices.heard(peer, stream);
}

bool MpiEndpoint::alive(Rank peer) {
  machinery_->progress();
  return !machinery_->peer_gone[peer] && !machinery_->notices.said_goodbye(peer);
}

bool MpiEndpoint::prepare_wait() {
  if (machinery_->progress()) {
    next_nap_ = kShortestNap;
    return false;
  }
  nap_.begin(next_nap_);
  next_nap_ = std::min(kLongestNap, next_nap_ * 2);
  return true;
}

}  // namespace

bool mpi_available() {
  return mpi::wire_available();
}

std::unique_ptr<Endpoint> make_mpi_endpoint(const MpiOptions& options) {
  return std::make_unique<MpiEndpoint>(options);
}

}  // namespace lockstep::transport
