// SPDX-License-Identifier: Apache-2.0
//
// Collectives between the ranks of a group. A Communicator is a small value: copies refer to the same group.
// A world of one is a group like any other; its operations return at once.
//
//   Communicator world = connect_from_environment();
//   Buffer gradients = world.allocate(bytes);               // registered: peers on this host use it in place
//   world.all_reduce(gradients.bytes(), {.dtype = DType::fp32});
//
// Buffers count bytes and must hold whole elements. Every operation is in place, as
// schedule/collective/collective.h lays down. All ranks of a group call the same operations in the same order
// on each stream. Calls from several threads are allowed; calls on one stream must then be ordered by the
// caller.
//
// Errors: UsageError for arguments that this rank alone can see are wrong, std::system_error when there is no
// thread for the first call in the background (the group stays usable); ContractMismatch, PeerLost, Timeout,
// Aborted otherwise, and DataError when a peer sends what breaks the format. After one of these the group is
// unusable: every later call raises Aborted with the first reason. Other groups go on. A rank that only sends
// in a call (the root of a broadcast, a rank that is not the root of a reduce), or that calls a collective of
// no elements, may be through before others were heard: that they disagree it is told at its next call on the
// group, by ContractMismatch or Aborted. What a failed operation left in its buffers is undefined, and a peer
// on this host that has not noticed the failure may still write into registered ones: do not use them again.
// Their memory is not given out a second time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/base/dtype.h"
#include "lockstep/base/rank.h"
#include "lockstep/comm/link_model.h"
#include "lockstep/kernels/reduce.h"
#include "lockstep/mesh/lanes.h"
#include "lockstep/mesh/mesh.h"
#include "lockstep/schedule/collective/collective.h"
#include "lockstep/transport/memory/address_space.h"

namespace lockstep::transport {
class Endpoint;
}

namespace lockstep::comm {

using kernels::ReduceOp;
using schedule::Algorithm;

class Engine;
class Group;
struct Operation;

// By rank: the subtrees of the lane tree that it brings, in lane order.
using LanePieces = std::vector<std::vector<Subtree>>;

// Streams of a group are independent queues: operations on one stream run in the order they were started.
inline constexpr std::uint32_t kStreamsPerGroup = 4;

struct Options {
  DType dtype = DType::fp32;
  ReduceOp op = ReduceOp::sum;
  Rank root = 0;                                 // broadcast, reduce
  std::optional<Algorithm> algorithm = {};       // none: chosen by measured cost
  Algorithm inner = Algorithm::direct;           // of hierarchical: inside a host
  Algorithm outer = Algorithm::direct;           // of hierarchical: between hosts
  std::optional<schedule::GridShape> grid = {};  // of mesh; none: the squarest torus
  std::optional<bool> exact = {};  // only algorithms with the canonical order; none: as the group
  std::uint32_t stream = 0;        // < kStreamsPerGroup
  std::optional<std::chrono::milliseconds> timeout =
      {};  // how long nothing may move (>= 0); none: as the group
};

// Memory that peers on the same host reach in place. Move-only.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::shared_ptr<Engine> engine, Bytes memory);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  Bytes bytes() const { return memory_; }
  template <typename T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(memory_.data()), memory_.size() / sizeof(T)};
  }

 private:
  std::shared_ptr<Engine> engine_;  // shared: memory outlives the communicator it came from
  Bytes memory_;
};

// An operation under way. Buffers must stay valid until it has ended. Destroying a Work does not end its
// operation.
class Work {
 public:
  Work() = default;
  Work(std::shared_ptr<Engine> engine, std::shared_ptr<Operation> operation);

  // Returns when the operation has ended; raises what it failed with.
  void wait();
  // True when it has ended; raises what it failed with. Counts as waiting: whoever asks again and again has
  // the same deadline as in wait().
  bool test();
  // The same for whoever goes on with something else: raises nothing and begins no timeout.
  bool has_ended() const;
  // Ends the operation and breaks the group (peers get Aborted); does nothing when it has already ended.
  void cancel();

 private:
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<Operation> operation_;  // shared with the engine that runs it
};

// See docs/errors.md for how soon ranks that disagree are told.
struct GroupSettings {
  std::string name = "world";
  std::chrono::milliseconds timeout{30'000};
  bool exact = true;
  std::vector<int> hosts = {};  // by rank: equal numbers share a host; empty: all share one
  bool hosts_are_near = true;   // false: to the choice of algorithms every rank is a host of its own
  LinkModel links = {};         // what the choice of algorithms rests on; the same on all ranks
};

class Communicator {
 public:
  // A world of one.
  Communicator();

  // All ranks of an endpoint. The endpoint is owned from here on. UsageError when the timeout is negative or
  // the hosts are not those of all ranks.
  explicit Communicator(std::unique_ptr<transport::Endpoint> endpoint, GroupSettings settings = {});

  Rank rank() const;
  int size() const;
  const std::string& name() const;

  // Ranks of the whole world, this one included, that compete for this host's cores.
  int ranks_on_this_host() const;

  // By rank: equal numbers share a host. Over MPI every rank counts as a host.
  std::vector<int> hosts() const;

  // What carries messages to the peer: "loopback", "shm", "tcp", "mpi".
  std::string_view link_to(Rank peer) const;

  // False once the peer is known to have ended its communicators, with or without its process. A rank that is
  // frozen is there.
  bool is_there(Rank peer) const;

  Buffer allocate(std::size_t bytes) const;

  // Makes all groups of the process unusable at once, whatever any thread waits for in them: operations under
  // way and later calls raise Aborted with the reason, and so do peers. Any thread; the first reason stays.
  void abort(const std::string& reason) const;

  // Buffers of peers on this host that operations go through in place count as this process's memory (in its
  // resident set) as well as theirs. From now on about so many bytes of them at most do, of all groups of the
  // process; what is used again costs a page fault for each 64 KiB: for buffers that are large and seldom
  // used.
  void limit_peer_memory(std::size_t bytes) const;

  // Called around every wait of a thread for operations, with true before it and with false after it, by that
  // thread; must not throw. For all groups of the process, from now on; before any of them is waited in.
  void watch_waits(std::function<void(bool begins)> watch) const;

  // Memory that outlives its rank. Whether peers on this host still read registered memory of a rank when its
  // process was killed: with all that it had written.
  bool memory_lasts(Rank peer) const;
  // Where such a peer finds memory from allocate(), the same for all peers; to be sent to it. None for other
  // memory, and for memory that a peer does not know of yet: when it is gone, or has to hear first, as it
  // does in is_there(), of what it was told before.
  std::optional<transport::Place> place_for(Rank peer, ConstBytes memory) const;
  // What the peer has shown as `place`: for as long as a communicator of this process lives, and not longer
  // than the peer has the buffer, if it lives. DataError when the peer has shown no such memory.
  ConstBytes memory_of(Rank peer, transport::Place place, std::size_t bytes) const;

  // Collective over this group: ranks with equal colour form a group, ordered by (key, rank). A negative
  // colour joins none and gets a world of one. 31 groups, those of one rank included, can exist at a time
  // beside the world: with more, all ranks get the same UsageError and this group stays usable. A group ends
  // with the last copy of its communicator and the last of its Work; one that failed, or in which a message
  // was sent and never received, keeps its place. Threads of a process may split different groups at the same
  // time.
  Communicator split(int colour, int key, std::string name) const;

  // Collective over this group: the ranks that differ from this one only on the axis, in its order, as a
  // group of that name. An axis of one rank gives a world of one, and one with all ranks this group itself:
  // neither takes a place among the 31. UsageError when the mesh is not one of this group's ranks.
  Communicator split(const Mesh& mesh, Axis axis) const;

  void all_reduce(Bytes data, const Options& options = {}) const;
  void reduce_scatter(Bytes data, const Options& options = {}) const;
  void all_gather(Bytes data, const Options& options = {}) const;
  void broadcast(Bytes data, const Options& options = {}) const;
  void reduce(Bytes data, const Options& options = {}) const;
  void all_to_all(Bytes input, Bytes output, const Options& options = {}) const;
  void barrier(const Options& options = {}) const;
  // A message may have no elements; it is matched as any other.
  void send(Rank to, Bytes data, const Options& options = {}) const;
  void recv(Rank from, Bytes data, const Options& options = {}) const;

  // The same, progressing in the background. Sends and receives of one stream are matched in the order they
  // were started; their timeouts begin with the first wait() or test(): until then a peer may compute.
  Work all_reduce_async(Bytes data, const Options& options = {}) const;
  Work reduce_scatter_async(Bytes data, const Options& options = {}) const;
  Work all_gather_async(Bytes data, const Options& options = {}) const;
  Work broadcast_async(Bytes data, const Options& options = {}) const;
  Work reduce_async(Bytes data, const Options& options = {}) const;
  Work all_to_all_async(Bytes input, Bytes output, const Options& options = {}) const;
  Work barrier_async(const Options& options = {}) const;
  Work send_async(Rank to, Bytes data, const Options& options = {}) const;
  Work recv_async(Rank from, Bytes data, const Options& options = {}) const;

  // Sums lane partials in the order of the one tree over all lanes (collective.h, "With lanes"). `pieces[r]`
  // lists what rank r brings; `partials` are this rank's, in that order (one buffer for the result if it
  // brings none).
  void all_reduce_lanes(std::span<const Bytes> partials, const LanePieces& pieces,
                        const Options& options = {}) const;
  void reduce_scatter_lanes(std::span<const Bytes> partials, const LanePieces& pieces,
                            const Options& options = {}) const;
  Work all_reduce_lanes_async(std::span<const Bytes> partials, const LanePieces& pieces,
                              const Options& options = {}) const;
  Work reduce_scatter_lanes_async(std::span<const Bytes> partials, const LanePieces& pieces,
                                  const Options& options = {}) const;

 private:
  Communicator(std::shared_ptr<Engine> engine, std::shared_ptr<Group> group);

  std::shared_ptr<Operation> prepare(schedule::Op op, Bytes data, const Options& options) const;
  std::shared_ptr<Operation> prepare_all_to_all(Bytes input, Bytes output, const Options& options) const;
  std::shared_ptr<Operation> prepare_lanes(schedule::Op op, std::span<const Bytes> partials,
                                           const LanePieces& pieces, const Options& options) const;
  void run(const std::shared_ptr<Operation>& operation) const;
  Work start(std::shared_ptr<Operation> operation) const;

  std::shared_ptr<Engine> engine_;  // shared by all groups of the process
  std::shared_ptr<Group> group_;    // shared by all copies and by operations under way
};

}  // namespace lockstep::comm
