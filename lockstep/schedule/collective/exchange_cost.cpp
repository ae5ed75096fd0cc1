// SPDX-License-Identifier: Apache-2.0
//
// Formulas of ring, line, direct and one_shot. Letters as in docs/algorithms.md: W ranks, n elements, rank r
// with chunk c_r.
#include "lockstep/schedule/collective/flat.h"

namespace lockstep::schedule {
namespace {

std::size_t ring_sent(const Task& task, Rank rank) {
  const Rank next = (rank + 1) % task.world();
  const std::size_t scatter = task.count - task.chunks[rank].size();
  const std::size_t gather = task.count - task.chunks[next].size();
  switch (task.op) {
    case Op::all_reduce:
      return scatter + gather;
    case Op::reduce_scatter:
      return scatter;
    case Op::all_gather:
      return gather;
    case Op::broadcast:
      return next == task.root ? 0 : task.count;
    case Op::reduce:
      return rank == task.root ? 0 : task.count;
    default:
      return (rank == task.root ? 0 : 1) + (next == task.root ? 0 : 1);
  }
}

std::size_t line_sent(const Task& task, Rank rank) {
  const Range own = task.chunks[rank];
  const std::size_t scatter = task.count - own.size();
  const std::size_t to_right = rank + 1 < task.world() ? own.end : 0;
  const std::size_t to_left = rank > 0 ? task.count - own.begin : 0;
  if (task.op == Op::reduce_scatter) return scatter;
  return to_right + to_left + (task.op == Op::all_reduce ? scatter : 0);
}

std::size_t direct_sent(const Task& task, Rank rank) {
  const std::size_t peers = task.world() - 1;
  const std::size_t own = task.chunks[rank].size();
  switch (task.op) {
    case Op::all_reduce:
      return task.count - own + peers * own;
    case Op::reduce_scatter:
      return task.count - own;
    case Op::all_gather:
      return peers * own;
    case Op::broadcast:
      if (rank == task.root) return task.count;
      return (peers - 1) * chunk_range(task.count, peers, rank < task.root ? rank : rank - 1).size();
    case Op::reduce:
      return rank == task.root ? task.count - own : task.count;
    default:
      return peers;  // a barrier
  }
}

int direct_depth(const Task& task) {
  if (task.op == Op::all_reduce) return 2;
  if (task.op == Op::broadcast) return task.world() > 2 ? 2 : 1;
  if (task.op == Op::reduce) return task.chunks[task.root].size() < task.count ? 2 : 1;
  return 1;
}

std::size_t one_shot_sent(const Task& task, Rank rank) {
  const std::size_t peers = task.world() - 1;
  if (task.op == Op::all_reduce) return peers * task.count;
  if (task.op == Op::broadcast) return rank == task.root ? peers * task.count : 0;
  return rank == task.root ? 0 : task.count;
}

template <typename Sent>
PredictedCost cost_of(const Task& task, int depth, Sent sent) {
  PredictedCost cost{.elements_sent = {}, .elements_combined = least_combined(task), .depth = depth};
  for (Rank rank = 0; rank < task.world(); ++rank) cost.elements_sent.push_back(sent(task, rank));
  return cost;
}

}  // namespace

PredictedCost ring_cost(const Task& task) {
  const bool twice = task.op == Op::all_reduce || task.op == Op::barrier;
  return cost_of(task, (task.world() - 1) * (twice ? 2 : 1), ring_sent);
}

PredictedCost line_cost(const Task& task) {
  return cost_of(task, (task.world() - 1) * (task.op == Op::all_reduce ? 2 : 1), line_sent);
}

PredictedCost direct_cost(const Task& task) {
  return cost_of(task, direct_depth(task), direct_sent);
}

PredictedCost one_shot_cost(const Task& task) {
  if (task.op == Op::all_gather || task.op == Op::barrier) return direct_cost(task);
  PredictedCost cost = cost_of(task, 1, one_shot_sent);
  if (task.op == Op::all_reduce) cost.elements_combined *= task.world();
  return cost;
}

}  // namespace lockstep::schedule
