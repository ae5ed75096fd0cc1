// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

namespace lockstep {

// Half-open [begin, end). Unless a name says otherwise, ranges count elements.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;

  constexpr std::size_t size() const { return end - begin; }
  constexpr bool empty() const { return begin == end; }
  constexpr bool contains(Range other) const { return begin <= other.begin && other.end <= end; }
  constexpr bool operator==(const Range&) const = default;
};

// Empty ranges overlap nothing.
constexpr bool overlap(Range a, Range b) {
  return std::max(a.begin, b.begin) < std::min(a.end, b.end);
}

constexpr Range intersection(Range a, Range b) {
  const std::size_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

// The share `index` of `count` elements cut into `parts` (>= 1) contiguous chunks; the first count % parts
// chunks hold one element more. Chunks are disjoint, in order, and cover [0, count).
constexpr Range chunk_range(std::size_t count, std::size_t parts, std::size_t index) {
  const std::size_t quotient = count / parts;
  const std::size_t remainder = count % parts;
  const std::size_t begin = index * quotient + std::min(index, remainder);
  return {begin, begin + quotient + (index < remainder ? 1 : 0)};
}

}  // namespace lockstep
