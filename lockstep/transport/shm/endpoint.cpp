// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/shm/endpoint.h"

#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/poll_set.h"
#include "lockstep/transport/memory/endpoint.h"
#include "lockstep/transport/memory/mapping.h"
#include "lockstep/transport/shm/arena.h"
#include "lockstep/transport/shm/layout.h"
#include "lockstep/transport/shm/mesh.h"
#include "lockstep/transport/shm/peer.h"
#include "lockstep/transport/shm/segment.h"

namespace lockstep::transport {
namespace {

// What this rank shows to all others.
struct OwnMemory {
  explicit OwnMemory(int world)
      : file(make_segment(control_segment_bytes(world), Reserve::when_touched)),
        memory(Mapping::of_file(file.get(), 0, control_segment_bytes(world), Mapping::Access::write)),
        doorbell(control().sleeping) {}

  ControlBlock& control() const { return memory.as<ControlBlock>(); }
  ChannelBlock& block(Rank peer, StreamId stream) const {
    return reinterpret_cast<ChannelBlock*>(memory.data() + row_offset(peer))[stream];
  }

  Descriptor file;
  Mapping memory;
  Doorbell doorbell;
};

class ShmEndpoint final : public MemoryEndpoint {
 public:
  ShmEndpoint(const ShmOptions& options, std::unique_ptr<OwnMemory> own,
              std::vector<std::unique_ptr<Connection>> connections)
      : MemoryEndpoint(options.rank, options.world, own->control(), own->doorbell),
        own_(std::move(own)),
        peers_(connections.size()),
        watched_(connections.size(), true) {
    watch_.add(own_->doorbell.fd());
    const Greeting greeting = {.rank = options.rank,
                               .world = options.world,
                               .control_fd = own_->file.get(),
                               .bell_fd = own_->doorbell.fd()};
    for (Rank peer = 0; peer < options.world; ++peer) {
      if (peer == options.rank) continue;
      peers_[peer] = std::make_unique<ShmPeer>(std::move(connections[peer]), greeting, peer, arena_,
                                               options.deadline, options.stop);
      add_peer(peer, peers_[peer]->control(), peers_[peer]->bell_fd());
      watch_.add(peers_[peer]->socket());
    }
  }

  std::string_view kind(Rank) const override { return "shm"; }

  Bytes allocate(std::size_t bytes) override {
    const Bytes memory = arena_.allocate(bytes);
    for (const std::unique_ptr<ShmPeer>& peer : peers_) {
      if (peer != nullptr) peer->announce();
    }
    return memory;
  }
  void release(Bytes memory) override { arena_.release(memory); }
  void forget_peer_memory() override {
    for (const std::unique_ptr<ShmPeer>& peer : peers_) {
      if (peer != nullptr) peer->forget();
    }
  }

  AddressSpace* lasting_space(Rank peer) override { return peer == rank() ? nullptr : &space(peer); }

  bool alive(Rank peer) override {
    LOCKSTEP_CHECK(peer >= 0 && peer < world());
    if (peer == rank()) return true;
    look_at(peer);
    return peers_[peer]->alive();
  }

  int wait_fd() const override { return watch_.fd(); }

 private:
  Blocks blocks(Rank peer, StreamId stream) override {
    return {.mine = own_->block(peer, stream), .theirs = peers_[peer]->block(stream)};
  }
  AddressSpace& space(Rank peer) override { return *peers_[peer]; }

  // Sockets are watched while we sleep; nothing else is to be looked at before.
  bool has_other_news() override { return false; }
  void handle_other_events() override {
    for (Rank peer = 0; peer < world(); ++peer) {
      if (peer != rank()) look_at(peer);
    }
  }

  void look_at(Rank rank_of_peer) {
    ShmPeer& peer = *peers_[rank_of_peer];
    peer.read_socket();
    // The end of a socket stays readable; watching it further would end every sleep at once.
    if (peer.alive() || !watched_[rank_of_peer]) return;
    watched_[rank_of_peer] = false;
    watch_.remove(peer.socket());
  }

  std::unique_ptr<OwnMemory> own_;
  Arena arena_;
  std::vector<std::unique_ptr<ShmPeer>> peers_;  // by rank; null for ourselves
  std::vector<bool> watched_;                    // by rank: its socket is in the watch
  PollSet watch_;                                // our doorbell and the sockets of peers
};

}  // namespace

std::unique_ptr<Endpoint> connect_shm(const ShmOptions& options) {
  if (options.world < 1 || options.rank < 0 || options.rank >= options.world) {
    throw UsageError(fmt::format("rank {} does not exist in a world of {}", options.rank, options.world));
  }
  auto own = std::make_unique<OwnMemory>(options.world);
  try {
    return std::make_unique<ShmEndpoint>(options, std::move(own), connect_shm_mesh(options));
  } catch (const std::system_error& error) {
    throw UsageError(fmt::format("cannot join over shm: {}; is the limit on open files too low (ulimit -n)?",
                                 error.what()));
  }
}

}  // namespace lockstep::transport
