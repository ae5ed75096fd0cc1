// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "lockstep/schedule/collective/phases.h"
#include "lockstep/schedule/collective/task.h"

namespace lockstep::schedule {

// Private to schedule/collective. all_reduce, reduce_scatter and all_gather on a grid: what its rows and
// columns do.
std::vector<Phase> mesh_phases(const Task& task);

// Whether a row or column of this length is a ring: in a torus, unless its ends are neighbours anyway.
constexpr bool is_ring(int length, bool torus) {
  return torus && length > 2;
}

// Positions on a row or column: those right of the root (at most `right` steps) and left of it. On a ring
// both sides reach halfway round.
class Axis {
 public:
  Axis(int length, int root, bool torus);

  // The neighbour one step nearer to the root; none at the root.
  std::optional<int> toward_root(int position) const;
  // The neighbours one step further away from it.
  std::vector<int> away_from_root(int position) const;
  int farthest() const;

 private:
  int offset_of(int position) const;  // from the root, in [-left, right]
  int at(int offset) const;

  int length_;
  int root_;
  int right_;
  int left_;
};

}  // namespace lockstep::schedule
