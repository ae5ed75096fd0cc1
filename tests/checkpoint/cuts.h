// SPDX-License-Identifier: Apache-2.0
//
// Tensors cut at random, as layouts do: by rows, by columns, and the parts again anywhere.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <rapidcheck.h>

#include "lockstep/checkpoint/store/manifest.h"

namespace lockstep::checkpoint::testing {

inline std::vector<std::int64_t> any_shape() {
  return *rc::gen::resize(
      3, rc::gen::container<std::vector<std::int64_t>>(rc::gen::weightedOneOf<std::int64_t>(
             {{20, rc::gen::inRange<std::int64_t>(1, 13)}, {1, rc::gen::just<std::int64_t>(0)}})));
}

// [0, size) in parts of which none is empty.
inline std::vector<Range> any_parts(std::size_t size) {
  if (size == 0) return {};
  auto ends = *rc::gen::resize(
      4, rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(1, size + 1)));
  ends.push_back(size);
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  std::vector<Range> parts;
  std::size_t begin = 0;
  for (const std::size_t end : ends) parts.push_back({std::exchange(begin, end), end});
  return parts;
}

// Those of the runs' elements that have these numbers: a part of a run, whole ones, a part of another.
inline std::vector<Runs> part_of(const Runs& runs, Range numbers) {
  std::vector<Runs> parts;
  each_numbered(runs, numbers, [&](std::size_t, std::size_t element, std::size_t count) {
    const bool continues = !parts.empty() && count == runs.length && parts.back().length == runs.length;
    if (continues) {
      ++parts.back().count;
    } else {
      parts.push_back({element, count, runs.distance, 1});
    }
  });
  return parts;
}

// Pieces that together have each element once.
inline std::vector<Runs> any_cut(const std::vector<std::int64_t>& shape) {
  const std::size_t elements = LogicalTensor{"t", shape}.elements();
  if (elements == 0) return {};
  const auto dims = *rc::gen::inRange<std::size_t>(0, shape.size() + 1);
  std::size_t rows = 1;
  for (std::size_t i = 0; i < dims; ++i) rows *= static_cast<std::size_t>(shape[i]);
  const std::size_t width = elements / rows;
  const bool again = *rc::gen::arbitrary<bool>();
  std::vector<Runs> pieces;
  for (const Range columns : any_parts(width)) {
    const Runs whole = {columns.begin, columns.size(), width, rows};
    for (const Range numbers : again ? any_parts(whole.size()) : std::vector<Range>{{0, whole.size()}}) {
      const std::vector<Runs> parts = part_of(whole, numbers);
      pieces.insert(pieces.end(), parts.begin(), parts.end());
    }
  }
  return pieces;
}

}  // namespace lockstep::checkpoint::testing
