// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "lockstep/mesh/lanes.h"

namespace lockstep::schedule {

struct Merge {
  int into;
  int from;
};

// Which slots hold which subtrees, as lanes are completed one after the other.
class Slots {
 public:
  int take() {
    const auto free = std::find(used_.begin(), used_.end(), false);
    const auto slot = static_cast<int>(free - used_.begin());
    if (free == used_.end()) used_.push_back(false);
    used_[static_cast<std::size_t>(slot)] = true;
    return slot;
  }

  // The additions that a completed lane makes possible, lowest level first. They empty the upper slots:
  // release() them once all is added.
  std::vector<Merge> complete(int lane, int slot) {
    std::vector<Merge> merges;
    pieces_.push_back({{.first = lane, .count = 1}, slot});
    while (pieces_.size() >= 2) {
      Piece& lower = pieces_[pieces_.size() - 2];
      const Piece& upper = pieces_.back();
      const bool neighbours =
          lower.lanes.count == upper.lanes.count && lower.lanes.first % (2 * lower.lanes.count) == 0;
      if (!neighbours) break;
      merges.push_back({.into = lower.slot, .from = upper.slot});
      lower.lanes.count *= 2;
      pieces_.pop_back();
    }
    return merges;
  }
  void release(const std::vector<Merge>& merges) {
    for (const Merge& merge : merges) used_[static_cast<std::size_t>(merge.from)] = false;
  }

  int count() const { return std::max(1, static_cast<int>(used_.size())); }
  std::vector<int> of_pieces() const {
    std::vector<int> slots;
    for (const Piece& piece : pieces_) slots.push_back(piece.slot);
    return slots;
  }

 private:
  struct Piece {
    Subtree lanes;
    int slot;
  };
  std::vector<bool> used_;
  std::vector<Piece> pieces_;
};

}  // namespace lockstep::schedule
