// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "lockstep/base/rank.h"

namespace lockstep::schedule::testing {

// One of the two trees of docs/algorithms.md. It stands on positions 1..size; a position that 2^i divides,
// and 2^(i+1) does not, has those less than 2^i away below it.
class TreeByText {
 public:
  // Over all of the world but `outside`; `second`: the first mirrored or shifted by one.
  TreeByText(int world, bool second, std::optional<Rank> outside = {});

  int size() const { return static_cast<int>(rank_at_.size()) - 1; }
  int height() const;
  int root() const;

  Rank rank_at(int position) const { return rank_at_[static_cast<std::size_t>(position)]; }
  int position_of(Rank rank) const;
  bool is_below(int position, int top) const;  // or the same
  std::vector<int> above(int position) const;  // parent first, root last
  std::vector<int> children(int position) const;

 private:
  std::vector<Rank> rank_at_;  // by position; the first place is not used
};

}  // namespace lockstep::schedule::testing
