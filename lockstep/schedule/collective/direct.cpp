// SPDX-License-Identifier: Apache-2.0
//
// direct: rank p is responsible for chunk p; everyone exchanges chunks with everyone. One round for every
// operation. A reduction adds all ranks' values of a chunk in one move, in the canonical order.
#include <utility>

#include "lockstep/schedule/collective/barrier.h"
#include "lockstep/schedule/collective/canonical.h"
#include "lockstep/schedule/collective/flat.h"
#include "lockstep/schedule/collective/moves.h"

namespace lockstep::schedule {
namespace {

// Everyone's value of this rank's chunk, its own included.
Move combine_own_chunk(const Task& task) {
  const std::vector<std::uint8_t> merges = canonical_merges(task.world());
  const Slice own = data(task.chunks[task.rank]);
  Move move{.sources = {}, .into = own, .send_to = {}, .finish = task.finish};
  for (Rank peer = 0; peer < task.world(); ++peer) {
    move.sources.push_back(peer == task.rank ? local(own, merges[peer]) : message(peer, merges[peer]));
  }
  return move;
}

void add_sends_to_owners(Round& round, const Task& task) {
  for (Rank peer : all_but(task.world(), task.rank)) add(round, send(data(task.chunks[peer]), {peer}));
}

void add_receives_from_owners(Round& round, const Task& task) {
  for (Rank peer : all_but(task.world(), task.rank)) add(round, receive(peer, data(task.chunks[peer])));
}

// The in-place exchange of program.h: what is sent to an owner comes back reduced. A peer's contribution to
// our chunk precedes its result on the wire, so the combining move stands before the receives.
Round all_reduce(const Task& task) {
  Round round;
  add_sends_to_owners(round, task);
  Move own = combine_own_chunk(task);
  own.send_to = all_but(task.world(), task.rank);
  add(round, std::move(own));
  add_receives_from_owners(round, task);
  return round;
}

Round reduce_scatter(const Task& task) {
  Round round;
  add(round, combine_own_chunk(task));
  add_sends_to_owners(round, task);
  return round;
}

Round all_gather(const Task& task) {
  Round round;
  add_receives_from_owners(round, task);
  add(round, send(data(task.chunks[task.rank]), all_but(task.world(), task.rank)));
  return round;
}

Round reduce(const Task& task) {
  Round round;
  add_sends_to_owners(round, task);
  Move own = combine_own_chunk(task);
  if (task.rank != task.root) own.send_to = {task.root};
  add(round, std::move(own));
  if (task.rank == task.root) add_receives_from_owners(round, task);
  return round;
}

// The root hands each other rank a share, and that rank passes it on to the rest: the root sends every
// element once.
Round broadcast(const Task& task) {
  const int others = task.world() - 1;
  const auto share_of = [&](Rank peer) {
    return data(chunk_range(task.count, others, peer < task.root ? peer : peer - 1));
  };
  Round round;
  if (task.rank == task.root) {
    for (Rank peer : all_but(task.world(), task.root)) add(round, send(share_of(peer), {peer}));
    return round;
  }
  const std::vector<Rank> rest = all_but(task.world(), task.rank, task.root);
  for (Rank peer : rest) add(round, receive(peer, share_of(peer)));
  add(round, receive(task.root, share_of(task.rank), rest));
  return round;
}

Round round_of(const Task& task) {
  switch (task.op) {
    case Op::all_reduce:
      return all_reduce(task);
    case Op::reduce_scatter:
      return reduce_scatter(task);
    case Op::all_gather:
      return all_gather(task);
    case Op::broadcast:
      return broadcast(task);
    default:
      return reduce(task);
  }
}

}  // namespace

Program generate_direct(const Task& task) {
  if (task.op == Op::barrier) return barrier_by_exchange(task);
  Program program = empty_program(task);
  if (task.world() > 1) add(program, round_of(task));
  return program;
}

}  // namespace lockstep::schedule
