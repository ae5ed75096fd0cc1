// SPDX-License-Identifier: Apache-2.0
//
// Private to schedule/collective: what the generator of one algorithm is asked for. A task is a
// CollectiveSpec for one rank, made general enough that a composed algorithm (phases.h) can ask for a part of
// its own work: chunks may have any size, and a reduction need not be the final one.
#pragma once

#include <cstddef>
#include <vector>

#include "lockstep/base/rank.h"
#include "lockstep/mesh/range.h"
#include "lockstep/schedule/collective/collective.h"
#include "lockstep/schedule/collective/program.h"

namespace lockstep::schedule {

struct Task {
  Op op = Op::all_reduce;
  Rank rank = 0;
  Rank root = 0;
  std::size_t count = 0;
  // One per rank, adjacent and in order, covering [0, count); empty ones are allowed. For reduce_scatter and
  // all_gather chunk p is rank p's by contract, elsewhere chunks only divide the work.
  std::vector<Range> chunks = {};
  std::size_t segment_elements = 0;
  GridShape grid = {};
  bool finish = true;  // mark the reduction as final (Move::finish)

  int world() const { return static_cast<int>(chunks.size()); }
};

// The task of one rank in a collective that is not hierarchical.
Task task_of(const CollectiveSpec& spec, Rank rank);

// [0, count) cut evenly, one chunk for each of `world` ranks.
std::vector<Range> even_chunks(std::size_t count, int world);

// `range` cut into segments of at most `segment_elements`; one segment if that is 0, none if it is empty.
std::vector<Range> segments_of(Range range, std::size_t segment_elements);

// A program without rounds, bound to one data buffer of task.count elements (none for a barrier).
Program empty_program(const Task& task);

}  // namespace lockstep::schedule
