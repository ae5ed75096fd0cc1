// SPDX-License-Identifier: Apache-2.0
//
// line: ranks in a row, each talking to its left (r - 1) and right (r + 1) neighbour only; a building block
// of mesh. Each phase is one round in which chunks travel in both directions at once, those with the longest
// way to go first.
#include <utility>

#include "lockstep/schedule/collective/flat.h"
#include "lockstep/schedule/collective/moves.h"

namespace lockstep::schedule {
namespace {

// Chunk c comes together at rank c from both ends of the line.
Round reduce_scatter(const Task& task) {
  const Rank rank = task.rank;
  const Rank last = task.world() - 1;
  Round round;
  for (Rank owner = last; owner > rank; --owner) {
    const Slice chunk = data(task.chunks[owner]);
    Move move = rank == 0 ? send(chunk, {}) : combine_in_order({message(rank - 1), local(chunk)}, chunk);
    move.send_to = {rank + 1};
    add(round, std::move(move));
  }
  for (Rank owner = 0; owner < rank; ++owner) {
    const Slice chunk = data(task.chunks[owner]);
    Move move = rank == last ? send(chunk, {}) : combine_in_order({local(chunk), message(rank + 1)}, chunk);
    move.send_to = {rank - 1};
    add(round, std::move(move));
  }
  const Slice own = data(task.chunks[rank]);
  std::vector<Source> sources;
  if (rank > 0) sources.push_back(message(rank - 1));
  sources.push_back(local(own));
  if (rank < last) sources.push_back(message(rank + 1));
  Move sum = combine_in_order(std::move(sources), own);
  sum.finish = task.finish;
  add(round, std::move(sum));
  return round;
}

// Chunk c spreads from rank c to both ends of the line.
Round all_gather(const Task& task) {
  const Rank rank = task.rank;
  const std::vector<Rank> left = rank > 0 ? std::vector{rank - 1} : std::vector<Rank>{};
  const std::vector<Rank> right = rank + 1 < task.world() ? std::vector{rank + 1} : std::vector<Rank>{};
  std::vector<Rank> both = left;
  both.insert(both.end(), right.begin(), right.end());
  Round round;
  add(round, send(data(task.chunks[rank]), both));
  for (Rank owner = rank - 1; owner >= 0; --owner) {
    add(round, receive(rank - 1, data(task.chunks[owner]), right));
  }
  for (Rank owner = rank + 1; owner < task.world(); ++owner) {
    add(round, receive(rank + 1, data(task.chunks[owner]), left));
  }
  return round;
}

}  // namespace

Program generate_line(const Task& task) {
  Program program = empty_program(task);
  if (task.world() == 1) return program;
  if (task.op != Op::all_gather) add(program, reduce_scatter(task));
  if (task.op != Op::reduce_scatter) add(program, all_gather(task));
  return program;
}

}  // namespace lockstep::schedule
