// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/loopback/endpoint.h"

#include <atomic>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/transport/memory/endpoint.h"
#include "lockstep/transport/memory/mapping.h"

namespace lockstep::transport {
namespace {

// Every byte of the process is in segment 0, at the offset that is its address.
class WholeProcess final : public AddressSpace {
 public:
  std::optional<Place> expose(ConstBytes memory) override {
    return Place{.segment = 0, .offset = reinterpret_cast<std::uintptr_t>(memory.data())};
  }
  std::byte* resolve(Place place, std::size_t) override { return reinterpret_cast<std::byte*>(place.offset); }
};

// What one rank owns and the others see.
struct Member {
  Mapping control = Mapping::anonymous(sizeof(ControlBlock));
  Doorbell doorbell{control.as<ControlBlock>().sleeping};
  std::atomic<bool> alive{true};
};

// Everything the ranks share; it lives as long as the last endpoint.
class World {
 public:
  explicit World(int size) {
    for (int rank = 0; rank < size; ++rank) members_.push_back(std::make_unique<Member>());
  }

  int size() const { return static_cast<int>(members_.size()); }
  Member& member(Rank rank) { return *members_[rank]; }
  std::atomic<std::uint64_t>& deaths() { return deaths_; }

  // The words that `owner` writes of its channel to `peer`.
  ChannelBlock& block(Rank owner, Rank peer, StreamId stream) {
    const std::lock_guard lock(mutex_);
    Mapping& block = blocks_[{owner, peer, stream}];
    if (block.bytes().empty()) block = Mapping::anonymous(sizeof(ChannelBlock));
    return block.as<ChannelBlock>();
  }

  Bytes allocate(std::size_t bytes) {
    Mapping memory = Mapping::anonymous(bytes);
    const Bytes result = memory.bytes();
    const std::lock_guard lock(mutex_);
    allocations_.emplace(result.data(), std::move(memory));
    return result;
  }
  void release(Bytes memory) {
    const std::lock_guard lock(mutex_);
    LOCKSTEP_CHECK(allocations_.erase(memory.data()) == 1, "released memory that was not allocated here");
  }

 private:
  std::vector<std::unique_ptr<Member>> members_;
  std::atomic<std::uint64_t> deaths_{0};
  std::mutex mutex_;
  std::map<std::tuple<Rank, Rank, StreamId>, Mapping> blocks_;
  std::map<std::byte*, Mapping> allocations_;
};

class LoopbackEndpoint final : public MemoryEndpoint {
 public:
  LoopbackEndpoint(std::shared_ptr<World> shared, Rank me)
      : MemoryEndpoint(me, shared->size(), shared->member(me).control.as<ControlBlock>(),
                       shared->member(me).doorbell),
        shared_(std::move(shared)) {
    for (Rank peer = 0; peer < world(); ++peer) {
      if (peer == me) continue;
      Member& member = shared_->member(peer);
      add_peer(peer, member.control.as<ControlBlock>(), member.doorbell.fd());
    }
  }

  ~LoopbackEndpoint() override {
    shared_->member(rank()).alive.store(false, std::memory_order_release);
    shared_->deaths().fetch_add(1, std::memory_order_release);
    ring_all();
  }

  std::string_view kind(Rank) const override { return "loopback"; }
  Bytes allocate(std::size_t bytes) override { return bytes == 0 ? Bytes{} : shared_->allocate(bytes); }
  void release(Bytes memory) override {
    if (!memory.empty()) shared_->release(memory);
  }
  bool alive(Rank peer) override { return shared_->member(peer).alive.load(std::memory_order_acquire); }
  int wait_fd() const override { return shared_->member(rank()).doorbell.fd(); }

 private:
  Blocks blocks(Rank peer, StreamId stream) override {
    return {.mine = shared_->block(rank(), peer, stream), .theirs = shared_->block(peer, rank(), stream)};
  }
  AddressSpace& space(Rank) override { return space_; }
  bool has_other_news() override {
    const std::uint64_t deaths = shared_->deaths().load(std::memory_order_acquire);
    return std::exchange(deaths_seen_, deaths) != deaths;
  }
  void handle_other_events() override {}

  std::shared_ptr<World> shared_;  // by all ranks of the world
  WholeProcess space_;
  std::uint64_t deaths_seen_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<Endpoint>> make_loopback(int world) {
  if (world < 1) throw UsageError("a loopback world needs at least one rank");
  const auto shared = std::make_shared<World>(world);
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  for (Rank rank = 0; rank < world; ++rank)
    endpoints.push_back(std::make_unique<LoopbackEndpoint>(shared, rank));
  return endpoints;
}

}  // namespace lockstep::transport
