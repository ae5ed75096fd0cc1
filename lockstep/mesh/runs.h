// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "lockstep/mesh/range.h"

namespace lockstep {

// Elements of a flat tensor, in ascending order: `count` runs of `length`, the first at `first`, each
// `distance` >= length behind the one before. A row-major matrix cut by rows is one run, cut by columns one
// run for each row.
struct Runs {
  std::size_t first = 0;
  std::size_t length = 0;
  std::size_t distance = 0;
  std::size_t count = 1;

  constexpr std::size_t size() const { return length * count; }
  bool operator==(const Runs&) const = default;
};

// Calls body(number among the runs' elements, element of the tensor, how many follow each other) for those of
// the runs that are in `wanted`, in ascending order.
template <typename Body>
void each_overlap(const Runs& runs, Range wanted, const Body& body) {
  if (runs.length == 0 || runs.count == 0 || wanted.empty()) return;
  // The first run that does not end before the wanted elements begin.
  std::size_t run = 0;
  if (wanted.begin >= runs.first + runs.length && runs.count > 1) {
    run = (wanted.begin - runs.first - runs.length) / runs.distance + 1;
  }
  for (; run < runs.count; ++run) {
    const std::size_t begin = runs.first + run * runs.distance;
    if (begin >= wanted.end) return;
    const Range both = intersection({begin, begin + runs.length}, wanted);
    if (!both.empty()) body(run * runs.length + (both.begin - begin), both.begin, both.size());
  }
}

// The same for those of the runs' elements that have these numbers, which are at most size().
template <typename Body>
void each_numbered(const Runs& runs, Range numbers, const Body& body) {
  while (!numbers.empty()) {
    const std::size_t run = numbers.begin / runs.length;
    const std::size_t in_run = numbers.begin % runs.length;
    const std::size_t count = std::min(runs.length - in_run, numbers.size());
    body(numbers.begin, runs.first + run * runs.distance + in_run, count);
    numbers.begin += count;
  }
}

}  // namespace lockstep
