// SPDX-License-Identifier: Apache-2.0
//
// ring: rank r sends only to its successor r + 1 and receives only from its predecessor r - 1 (modulo the
// world). Each phase is one round in which every chunk travels on its own: a rank passes on a chunk as soon
// as it has it.
#include <utility>

#include "lockstep/schedule/collective/barrier.h"
#include "lockstep/schedule/collective/flat.h"
#include "lockstep/schedule/collective/moves.h"
#include "lockstep/schedule/collective/spanning_tree.h"

namespace lockstep::schedule {
namespace {

class Ring {
 public:
  explicit Ring(const Task& task) : task_(task), world_(task.world()) {}

  // Chunk c starts at rank c + 1, collects every rank's value on its way round and ends at rank c.
  Round reduce_scatter() const {
    Round round;
    add(round, send(chunk(task_.rank - 1), {next()}));
    for (int hop = 1; hop < world_; ++hop) {
      const Slice slice = chunk(task_.rank - 1 - hop);
      Move move = combine_in_order({message(previous()), local(slice)}, slice);
      const bool arrived = hop == world_ - 1;
      if (!arrived) move.send_to = {next()};
      move.finish = arrived && task_.finish;
      add(round, std::move(move));
    }
    return round;
  }

  // Chunk c starts at rank c and stops before it would come home.
  Round all_gather() const {
    Round round;
    add(round, send(chunk(task_.rank), {next()}));
    for (int hop = 1; hop < world_; ++hop) {
      const bool last = hop == world_ - 1;
      add(round,
          receive(previous(), chunk(task_.rank - hop), last ? std::vector<Rank>{} : std::vector{next()}));
    }
    return round;
  }

  // The ring cut open before the root, as a tree without branches: values flow down it away from the root,
  // and for a reduction up it, from the root's successor round to the root.
  TreeNode broadcast_chain() const {
    TreeNode node;
    if (task_.rank != task_.root) node.parent = previous();
    if (next() != task_.root) node.after = {next()};
    return node;
  }
  TreeNode reduce_chain() const {
    TreeNode node;
    if (task_.rank != task_.root) node.parent = next();
    if (previous() != task_.root) node.before = {previous()};
    return node;
  }

 private:
  Rank wrap(int position) const { return (position % world_ + world_) % world_; }
  Rank next() const { return wrap(task_.rank + 1); }
  Rank previous() const { return wrap(task_.rank - 1); }
  Slice chunk(int index) const { return data(task_.chunks[wrap(index)]); }

  const Task& task_;
  int world_;
};

}  // namespace

Program generate_ring(const Task& task) {
  const Ring ring(task);
  Program program = empty_program(task);
  if (task.world() == 1) return program;
  switch (task.op) {
    case Op::all_reduce:
      add(program, ring.reduce_scatter());
      add(program, ring.all_gather());
      break;
    case Op::reduce_scatter:
      add(program, ring.reduce_scatter());
      break;
    case Op::all_gather:
      add(program, ring.all_gather());
      break;
    case Op::broadcast:
      add(program, send_down({{ring.broadcast_chain(), task.chunks}}));
      break;
    case Op::reduce:
      add(program, reduce_up({{ring.reduce_chain(), task.chunks}}, task.finish));
      break;
    default:
      return barrier_over(ring.reduce_chain(), ring.broadcast_chain(), task);
  }
  return program;
}

}  // namespace lockstep::schedule
