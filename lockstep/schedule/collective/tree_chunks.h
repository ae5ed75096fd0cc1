// SPDX-License-Identifier: Apache-2.0
//
// Private to schedule/collective: chunks on their way along the two trees, each of which carries half of the
// elements. What passes between a rank and its parent are the chunks of the rank's subtree, as far as they
// are in the tree's half: mostly one range, one message.
#pragma once

#include <vector>

#include "lockstep/schedule/collective/program.h"
#include "lockstep/schedule/collective/task.h"
#include "lockstep/schedule/collective/two_trees.h"

namespace lockstep::schedule {

// The chunks of the subtree of `top`, in the tree's half of the elements: ranges in order, none empty.
std::vector<Range> chunks_below(const TwoTrees& trees, const Task& task, Rank top, int tree);

// From the roots, which have their whole half, to every rank its chunk.
void add_scatter_down(Program& program, const TwoTrees& trees, const Task& task);

// From every rank its chunk to the roots.
void add_gather_up(Program& program, const TwoTrees& trees, const Task& task);

}  // namespace lockstep::schedule
