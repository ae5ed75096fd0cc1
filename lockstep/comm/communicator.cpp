// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/communicator.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/engine.h"
#include "lockstep/comm/group.h"
#include "lockstep/comm/operation.h"
#include "lockstep/transport/loopback/endpoint.h"

namespace lockstep::comm {
namespace {

using schedule::Op;

std::size_t elements_in(Bytes data, DType dtype, std::string_view what) {
  const std::size_t size = size_of(dtype);
  if (data.size() % size != 0) {
    throw UsageError(fmt::format("{}: a buffer of {} bytes does not hold whole {} elements of {} bytes", what,
                                 data.size(), name_of(dtype), size));
  }
  return data.size() / size;
}

void check_rank(const Group& group, Rank rank, std::string_view what) {
  if (rank >= 0 && rank < group.size()) return;
  throw UsageError(fmt::format("{}: there is no rank {} in {}, which has {} ranks", what, rank,
                               group.settings.name, group.size()));
}

void check_stream(std::uint32_t stream) {
  if (stream < kStreamsPerGroup) return;
  throw UsageError(
      fmt::format("there is no stream {}: a group has streams 0 to {}", stream, kStreamsPerGroup - 1));
}

void check_timeout(std::chrono::milliseconds timeout) {
  if (timeout.count() >= 0) return;
  throw UsageError(
      fmt::format("a timeout of {} ms is negative: say how long nothing may move", timeout.count()));
}

void check_hosts(const GroupSettings& settings, int world) {
  if (settings.hosts.empty() || settings.hosts.size() == static_cast<std::size_t>(world)) return;
  throw UsageError(fmt::format("hosts are given for {} ranks, but {} has {}", settings.hosts.size(),
                               settings.name, world));
}

// One that the clock cannot count ends with it: after some 292 years.
std::chrono::nanoseconds timeout_of(const Group& group, const Options& options) {
  const std::chrono::milliseconds timeout = options.timeout.value_or(group.settings.timeout);
  check_timeout(timeout);
  using std::chrono::floor;
  return std::min(timeout, floor<std::chrono::milliseconds>(std::chrono::nanoseconds::max()));
}

PlanRequest request_for(const Group& group, Op op, std::size_t count, const Options& options) {
  check_stream(options.stream);
  check_rank(group, options.root, name_of(op));
  PlanRequest request;
  request.op = op;
  request.dtype = options.dtype;
  request.reduce = options.op;
  request.count = count;
  request.root = options.root;
  request.algorithm = options.algorithm;
  if (options.algorithm == Algorithm::hierarchical) {
    request.inner = options.inner;
    request.outer = options.outer;
  }
  if (options.algorithm == Algorithm::mesh) request.grid = options.grid;
  // Who names an algorithm gets it, unless exactness is asked for in the same breath.
  request.exact = options.exact.value_or(!options.algorithm && group.settings.exact);
  return request;
}

std::shared_ptr<Operation> collective(const std::shared_ptr<Group>& group, const PlanRequest& request,
                                      const Options& options, std::span<std::byte* const> buffers) {
  const std::shared_ptr<const Plan> plan = group->planner.plan(request);
  auto operation = std::make_shared<Operation>();
  operation->group = group;
  operation->stream = options.stream;
  operation->contract = plan->contract;
  operation->notice = plan->notice;
  operation->timeout = timeout_of(*group, options);
  operation->script = plan->script;
  operation->ports = group->streams[options.stream].ports;
  operation->digest = plan->digest;
  operation->arithmetic = {.dtype = request.dtype, .op = request.reduce, .divide_by = plan->divide_by};
  LOCKSTEP_CHECK(buffers.size() == plan->script->program().scratch_from,
                 "the caller's buffers are those the program expects");
  operation->buffers.assign(buffers.begin(), buffers.end());
  return operation;
}

// One message as a program of one move. One without elements takes its place among the others all the same:
// it carries an element of scratch.
schedule::Program message_program(const Group& group, Rank peer, std::size_t elements, bool sends) {
  const std::size_t carried = std::max<std::size_t>(elements, 1);
  schedule::Program program{.rank = group.rank,
                            .world = group.size(),
                            .buffer_elements = {carried},
                            .scratch_from = elements == 0 ? 0U : 1U,
                            .rounds = {}};
  const schedule::Slice slice{.buffer = 0, .range = {0, carried}};
  schedule::Move move;
  if (sends) {
    move.sources = {{.from = schedule::kLocal, .slice = slice, .merges = 0}};
    move.send_to = {peer};
  } else {
    move.sources = {{.from = peer, .slice = {}, .merges = 0}};
    move.into = slice;
  }
  program.rounds = {{move}};
  return program;
}

std::shared_ptr<Operation> message(const std::shared_ptr<Group>& group, Rank peer, Bytes data,
                                   const Options& options, bool sends) {
  const std::string_view what = sends ? "send" : "recv";
  check_stream(options.stream);
  check_rank(*group, peer, what);
  if (peer == group->rank) throw UsageError(fmt::format("{}: rank {} cannot talk to itself", what, peer));
  const std::size_t elements = elements_in(data, options.dtype, what);
  auto operation = std::make_shared<Operation>();
  operation->group = group;
  operation->stream = options.stream;
  operation->point_to_point = true;
  operation->contract.point_to_point = true;
  operation->contract.dtype = options.dtype;
  operation->contract.count = elements;
  operation->timeout = timeout_of(*group, options);
  operation->script = std::make_shared<const Script>(message_program(*group, peer, elements, sends));
  operation->ports = group->point_to_point_ports[options.stream];
  operation->digest = digest_of(operation->contract);
  operation->arithmetic.dtype = options.dtype;
  if (elements > 0) operation->buffers = {data.data()};
  return operation;
}

void with_lasting_space(Engine& engine, const Group& group, Rank peer, std::string_view what,
                        const std::function<void(transport::AddressSpace&)>& body) {
  check_rank(group, peer, what);
  transport::AddressSpace* space = nullptr;
  engine.exclusively([&](transport::Endpoint& endpoint) {
    space = endpoint.lasting_space(group.members[static_cast<std::size_t>(peer)]);
    if (space != nullptr) body(*space);
  });
  if (space != nullptr) return;
  throw UsageError(
      fmt::format("{}: memory of rank {} of {} does not outlive it here", what, peer, group.settings.name));
}

}  // namespace

// --- Buffer

Buffer::Buffer(std::shared_ptr<Engine> engine, Bytes memory) : engine_(std::move(engine)), memory_(memory) {}
Buffer::Buffer(Buffer&& other) noexcept
    : engine_(std::move(other.engine_)), memory_(std::exchange(other.memory_, Bytes{})) {}
Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(engine_, other.engine_);
  std::swap(memory_, other.memory_);
  return *this;
}
Buffer::~Buffer() {
  if (!engine_) return;
  engine_->release(memory_);
}

// --- Work

Work::Work(std::shared_ptr<Engine> engine, std::shared_ptr<Operation> operation)
    : engine_(std::move(engine)), operation_(std::move(operation)) {}

void Work::wait() {
  if (operation_) engine_->wait(operation_);
}

bool Work::test() {
  if (!operation_) return true;
  operation_->awaited.store(true, std::memory_order_relaxed);
  if (!has_ended()) return false;
  if (operation_->error) std::rethrow_exception(operation_->error);
  return true;
}

bool Work::has_ended() const {
  return !operation_ || operation_->ended.load(std::memory_order_acquire);
}

void Work::cancel() {
  if (operation_) engine_->cancel(operation_);
}

// --- Communicator

Communicator::Communicator() : Communicator(std::move(transport::make_loopback(1).front())) {}

Communicator::Communicator(std::unique_ptr<transport::Endpoint> endpoint, GroupSettings settings)
    : engine_(std::make_shared<Engine>(std::move(endpoint))) {
  check_timeout(settings.timeout);
  check_hosts(settings, engine_->world());
  std::vector<Rank> members(static_cast<std::size_t>(engine_->world()));
  std::iota(members.begin(), members.end(), 0);
  GroupPlace first{.numbers = std::make_shared<GroupNumbers>()};
  first.numbers->take(first.number);
  engine_->exclusively([&](transport::Endpoint& shared) {
    group_ = std::make_shared<Group>(shared, std::move(members), std::move(first), std::move(settings));
  });
}

Communicator::Communicator(std::shared_ptr<Engine> engine, std::shared_ptr<Group> group)
    : engine_(std::move(engine)), group_(std::move(group)) {}

Rank Communicator::rank() const {
  return group_->rank;
}
int Communicator::size() const {
  return group_->size();
}
const std::string& Communicator::name() const {
  return group_->settings.name;
}

std::string_view Communicator::link_to(Rank peer) const {
  check_rank(*group_, peer, "link_to");
  std::string_view kind;
  engine_->exclusively([&](transport::Endpoint& endpoint) {
    kind = endpoint.kind(group_->members[static_cast<std::size_t>(peer)]);
  });
  return kind;
}

bool Communicator::is_there(Rank peer) const {
  check_rank(*group_, peer, "is_there");
  bool is_there = false;
  engine_->exclusively([&](transport::Endpoint& endpoint) {
    is_there = endpoint.alive(group_->members[static_cast<std::size_t>(peer)]);
  });
  return is_there;
}

std::vector<int> Communicator::hosts() const {
  const std::vector<int>& told = group_->settings.hosts;
  return told.empty() ? std::vector<int>(static_cast<std::size_t>(size()), 0) : told;
}

int Communicator::ranks_on_this_host() const {
  return engine_->ranks_on_this_host();
}

void Communicator::abort(const std::string& reason) const {
  engine_->abort(reason, *group_->place.numbers);
}

void Communicator::limit_peer_memory(std::size_t bytes) const {
  engine_->limit_peer_memory(bytes);
}

void Communicator::watch_waits(std::function<void(bool begins)> watch) const {
  engine_->watch_waits(std::move(watch));
}

Buffer Communicator::allocate(std::size_t bytes) const {
  return {engine_, engine_->allocate(bytes)};
}

bool Communicator::memory_lasts(Rank peer) const {
  check_rank(*group_, peer, "memory_lasts");
  bool lasts = false;
  engine_->exclusively([&](transport::Endpoint& endpoint) {
    lasts = endpoint.lasting_space(group_->members[static_cast<std::size_t>(peer)]) != nullptr;
  });
  return lasts;
}

std::optional<transport::Place> Communicator::place_for(Rank peer, ConstBytes memory) const {
  std::optional<transport::Place> place;
  with_lasting_space(*engine_, *group_, peer, "place_for",
                     [&](transport::AddressSpace& space) { place = space.expose(memory); });
  return place;
}

ConstBytes Communicator::memory_of(Rank peer, transport::Place place, std::size_t bytes) const {
  ConstBytes memory;
  with_lasting_space(*engine_, *group_, peer, "memory_of", [&](transport::AddressSpace& space) {
    memory = {space.resolve(place, bytes), bytes};
  });
  return memory;
}

std::shared_ptr<Operation> Communicator::prepare(Op op, Bytes data, const Options& options) const {
  const PlanRequest request =
      request_for(*group_, op, elements_in(data, options.dtype, name_of(op)), options);
  const std::array<std::byte*, 1> buffer = {data.data()};
  return collective(group_, request, options, std::span(buffer).first(op == Op::barrier ? 0 : 1));
}

void Communicator::run(const std::shared_ptr<Operation>& operation) const {
  engine_->run(operation);
}

Work Communicator::start(std::shared_ptr<Operation> operation) const {
  engine_->start(operation);
  return {engine_, std::move(operation)};
}

void Communicator::all_reduce(Bytes data, const Options& options) const {
  run(prepare(Op::all_reduce, data, options));
}
void Communicator::reduce_scatter(Bytes data, const Options& options) const {
  run(prepare(Op::reduce_scatter, data, options));
}
void Communicator::all_gather(Bytes data, const Options& options) const {
  run(prepare(Op::all_gather, data, options));
}
void Communicator::broadcast(Bytes data, const Options& options) const {
  run(prepare(Op::broadcast, data, options));
}
void Communicator::reduce(Bytes data, const Options& options) const {
  run(prepare(Op::reduce, data, options));
}
void Communicator::barrier(const Options& options) const {
  run(prepare(Op::barrier, {}, options));
}

Work Communicator::all_reduce_async(Bytes data, const Options& options) const {
  return start(prepare(Op::all_reduce, data, options));
}
Work Communicator::reduce_scatter_async(Bytes data, const Options& options) const {
  return start(prepare(Op::reduce_scatter, data, options));
}
Work Communicator::all_gather_async(Bytes data, const Options& options) const {
  return start(prepare(Op::all_gather, data, options));
}
Work Communicator::broadcast_async(Bytes data, const Options& options) const {
  return start(prepare(Op::broadcast, data, options));
}
Work Communicator::reduce_async(Bytes data, const Options& options) const {
  return start(prepare(Op::reduce, data, options));
}
Work Communicator::barrier_async(const Options& options) const {
  return start(prepare(Op::barrier, {}, options));
}

std::shared_ptr<Operation> Communicator::prepare_all_to_all(Bytes input, Bytes output,
                                                            const Options& options) const {
  const std::size_t total = elements_in(input, options.dtype, "all_to_all");
  if (input.size() != output.size() || total % static_cast<std::size_t>(size()) != 0) {
    throw UsageError(fmt::format(
        "all_to_all: input ({} bytes) and output ({} bytes) must have the same size, a multiple of {} "
        "elements of {}",
        input.size(), output.size(), size(), name_of(options.dtype)));
  }
  if (overlap(input, output))
    throw UsageError("all_to_all: input and output overlap; give it two separate buffers");
  const PlanRequest request =
      request_for(*group_, Op::all_to_all, total / static_cast<std::size_t>(size()), options);
  const std::array<std::byte*, 2> buffers = {input.data(), output.data()};
  return collective(group_, request, options, buffers);
}

void Communicator::all_to_all(Bytes input, Bytes output, const Options& options) const {
  run(prepare_all_to_all(input, output, options));
}
Work Communicator::all_to_all_async(Bytes input, Bytes output, const Options& options) const {
  return start(prepare_all_to_all(input, output, options));
}

void Communicator::send(Rank to, Bytes data, const Options& options) const {
  run(message(group_, to, data, options, true));
}
void Communicator::recv(Rank from, Bytes data, const Options& options) const {
  run(message(group_, from, data, options, false));
}
Work Communicator::send_async(Rank to, Bytes data, const Options& options) const {
  return start(message(group_, to, data, options, true));
}
Work Communicator::recv_async(Rank from, Bytes data, const Options& options) const {
  return start(message(group_, from, data, options, false));
}

std::shared_ptr<Operation> Communicator::prepare_lanes(Op op, std::span<const Bytes> partials,
                                                       const LanePieces& pieces,
                                                       const Options& options) const {
  if (pieces.size() != static_cast<std::size_t>(size())) {
    throw UsageError(fmt::format("{}: lane pieces are given for {} ranks, but {} has {}", name_of(op),
                                 pieces.size(), name(), size()));
  }
  const std::size_t expected = std::max<std::size_t>(1, pieces[static_cast<std::size_t>(rank())].size());
  if (partials.size() != expected) {
    throw UsageError(fmt::format("{}: rank {} must bring {} buffers for its lane pieces, not {}", name_of(op),
                                 rank(), expected, partials.size()));
  }
  const std::size_t count = elements_in(partials[0], options.dtype, name_of(op));
  std::vector<std::byte*> buffers;
  for (Bytes partial : partials) {
    if (partial.size() != partials[0].size()) {
      throw UsageError(fmt::format("{}: lane partials differ in size ({} and {} bytes)", name_of(op),
                                   partials[0].size(), partial.size()));
    }
    buffers.push_back(partial.data());
  }
  PlanRequest request = request_for(*group_, op, count, options);
  request.algorithm = Algorithm::direct;
  request.pieces = pieces;
  return collective(group_, request, options, buffers);
}

void Communicator::all_reduce_lanes(std::span<const Bytes> partials, const LanePieces& pieces,
                                    const Options& options) const {
  run(prepare_lanes(Op::all_reduce, partials, pieces, options));
}
Work Communicator::all_reduce_lanes_async(std::span<const Bytes> partials, const LanePieces& pieces,
                                          const Options& options) const {
  return start(prepare_lanes(Op::all_reduce, partials, pieces, options));
}
void Communicator::reduce_scatter_lanes(std::span<const Bytes> partials, const LanePieces& pieces,
                                        const Options& options) const {
  run(prepare_lanes(Op::reduce_scatter, partials, pieces, options));
}
Work Communicator::reduce_scatter_lanes_async(std::span<const Bytes> partials, const LanePieces& pieces,
                                              const Options& options) const {
  return start(prepare_lanes(Op::reduce_scatter, partials, pieces, options));
}

}  // namespace lockstep::comm
