// SPDX-License-Identifier: Apache-2.0
//
// one_shot: whoever has a value sends all of it to whoever needs it; one message deep, the canonical order.
#include <utility>

#include "lockstep/schedule/collective/barrier.h"
#include "lockstep/schedule/collective/canonical.h"
#include "lockstep/schedule/collective/flat.h"
#include "lockstep/schedule/collective/moves.h"

namespace lockstep::schedule {
namespace {

Slice whole_buffer(const Task& task) {
  return data({0, task.count});
}

// Values arrive in scratch, because a peer may still have to take ours from the buffer when the last arrives.
void add_all_reduce(Program& program, const Task& task) {
  const std::vector<Rank> peers = all_but(task.world(), task.rank);
  program.buffer_elements.push_back(peers.size() * task.count);
  const std::vector<std::uint8_t> merges = canonical_merges(task.world());
  Round exchange;
  Move sum{.sources = {}, .into = whole_buffer(task), .send_to = {}, .finish = task.finish};
  std::size_t begin = 0;
  for (Rank peer = 0; peer < task.world(); ++peer) {
    if (peer == task.rank) {
      sum.sources.push_back(local(whole_buffer(task), merges[peer]));
      continue;
    }
    const Slice arrived{.buffer = program.scratch_from, .range = {begin, begin + task.count}};
    begin += task.count;
    add(exchange, receive(peer, arrived));
    sum.sources.push_back(local(arrived, merges[peer]));
  }
  add(exchange, send(whole_buffer(task), peers));
  add(program, std::move(exchange));
  Round combine;
  add(combine, std::move(sum));
  add(program, std::move(combine));
}

Round reduce(const Task& task) {
  Round round;
  if (task.rank != task.root) {
    add(round, send(whole_buffer(task), {task.root}));
    return round;
  }
  const std::vector<std::uint8_t> merges = canonical_merges(task.world());
  Move sum{.sources = {}, .into = whole_buffer(task), .send_to = {}, .finish = task.finish};
  for (Rank peer = 0; peer < task.world(); ++peer) {
    sum.sources.push_back(peer == task.rank ? local(whole_buffer(task), merges[peer])
                                            : message(peer, merges[peer]));
  }
  add(round, std::move(sum));
  return round;
}

Round broadcast(const Task& task) {
  Round round;
  if (task.rank == task.root) {
    add(round, send(whole_buffer(task), all_but(task.world(), task.rank)));
  } else {
    add(round, receive(task.root, whole_buffer(task)));
  }
  return round;
}

}  // namespace

Program generate_one_shot(const Task& task) {
  if (task.op == Op::barrier) return barrier_by_exchange(task);
  // Gathering is one message deep already when everyone exchanges chunks.
  if (task.op == Op::all_gather) return generate_direct(task);
  Program program = empty_program(task);
  if (task.world() == 1) return program;
  if (task.op == Op::all_reduce) add_all_reduce(program, task);
  if (task.op == Op::reduce) add(program, reduce(task));
  if (task.op == Op::broadcast) add(program, broadcast(task));
  return program;
}

}  // namespace lockstep::schedule
