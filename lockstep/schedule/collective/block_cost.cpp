// SPDX-License-Identifier: Apache-2.0
//
// Formulas of halving_doubling.
#include <bit>

#include "lockstep/schedule/collective/flat.h"

namespace lockstep::schedule {
namespace {

int floor_log2(int value) {
  return std::bit_width(static_cast<unsigned>(value)) - 1;
}

// Binary blocks, seen from one rank. See halving_doubling.cpp for the words.
struct BlockPlace {
  int index = 0;
  int bits = 0;
  bool has_larger = false;
  bool has_smaller = false;
};

BlockPlace block_place(Rank rank, int world) {
  int first = 0;
  for (;;) {
    const int bits = floor_log2(world - first);
    const int end = first + (1 << bits);
    if (rank < end) return {rank - first, bits, first > 0, end < world};
    first = end;
  }
}

class BlockFormula {
 public:
  explicit BlockFormula(const Task& task) : task_(task), bits_(floor_log2(task.world())) {}

  std::size_t sent(Rank rank) const {
    const BlockPlace place = block_place(rank, task_.world());
    const std::size_t part = held(place.index, place.bits).size();
    std::size_t up = task_.count - part + (place.has_larger ? part : 0);
    std::size_t down = place.has_smaller ? part : 0;
    for (int step = 1; step <= place.bits; ++step) down += held(place.index, step).size();
    const Range own = part_in_largest(rank);
    switch (task_.op) {
      case Op::all_reduce:
        return up + down;
      case Op::reduce_scatter:
        return up + own.size() - intersection(own, task_.chunks[rank]).size();
      case Op::all_gather:
        return task_.chunks[rank].size() - intersection(own, task_.chunks[rank]).size() + down;
      case Op::broadcast:
        return (rank == task_.root ? task_.count - own.size() : 0) + down;
      case Op::reduce:
        return up + (rank == task_.root ? 0 : own.size());
      default:
        return dissemination_rounds();
    }
  }

  int depth() const {
    if (task_.op == Op::all_reduce) return 2 * bits_;
    if (task_.op == Op::barrier) return dissemination_rounds();
    return bits_ + (redistributes() ? 1 : 0);
  }

 private:
  int dissemination_rounds() const { return std::bit_width(static_cast<unsigned>(task_.world() - 1)); }

  // Does any element of the largest block's parts belong elsewhere?
  bool redistributes() const {
    const bool rooted = task_.op == Op::broadcast || task_.op == Op::reduce;
    std::size_t at_home = 0;
    for (Rank rank = 0; rank < task_.world(); ++rank) {
      const Range home = !rooted ? task_.chunks[rank] : rank == task_.root ? Range{0, task_.count} : Range{};
      at_home += intersection(part_in_largest(rank), home).size();
    }
    return at_home < task_.count;
  }

  Range part_in_largest(Rank rank) const { return rank < 1 << bits_ ? held(rank, bits_) : Range{}; }

  Range held(int index, int step) const {
    int reversed = 0;
    for (int bit = 0; bit < step; ++bit) reversed = reversed * 2 + (index >> bit & 1);
    const std::size_t pieces = std::size_t{1} << bits_;
    const std::size_t first = static_cast<std::size_t>(reversed) << (bits_ - step);
    const std::size_t last = first + (std::size_t{1} << (bits_ - step)) - 1;
    return {chunk_range(task_.count, pieces, first).begin, chunk_range(task_.count, pieces, last).end};
  }

  const Task& task_;
  int bits_;
};

}  // namespace

PredictedCost halving_doubling_cost(const Task& task) {
  const BlockFormula formula(task);
  PredictedCost cost{
      .elements_sent = {}, .elements_combined = least_combined(task), .depth = formula.depth()};
  for (Rank rank = 0; rank < task.world(); ++rank) cost.elements_sent.push_back(formula.sent(rank));
  return cost;
}

}  // namespace lockstep::schedule
