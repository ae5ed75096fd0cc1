// SPDX-License-Identifier: Apache-2.0
#include "tests/schedule/tree_by_text.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <functional>

namespace lockstep::schedule::testing {
namespace {

int largest_power_in(int position) {
  return position & -position;
}

int largest_power_up_to(int number) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(number)));
}

}  // namespace

TreeByText::TreeByText(int world, bool second, std::optional<Rank> outside) {
  std::vector<Rank> ranks;
  const Rank first = outside ? *outside + 1 : 0;
  for (int i = 0; i < world - (outside ? 1 : 0); ++i) ranks.push_back((first + i) % world);
  if (second && ranks.size() % 2 == 0) std::ranges::reverse(ranks);
  if (second && ranks.size() % 2 == 1) std::rotate(ranks.begin(), ranks.begin() + 1, ranks.end());
  rank_at_ = std::move(ranks);
  rank_at_.insert(rank_at_.begin(), -1);
}

int TreeByText::height() const {
  return std::bit_width(static_cast<unsigned>(size())) - 1;
}

int TreeByText::root() const {
  return largest_power_up_to(size());
}

int TreeByText::position_of(Rank rank) const {
  return static_cast<int>(std::ranges::find(rank_at_, rank) - rank_at_.begin());
}

bool TreeByText::is_below(int position, int top) const {
  return std::abs(position - top) < largest_power_in(top);
}

std::vector<int> TreeByText::above(int position) const {
  std::vector<int> tops;
  for (int top = 1; top <= size(); ++top) {
    if (top != position && is_below(position, top)) tops.push_back(top);
  }
  std::ranges::sort(tops, std::less{}, largest_power_in);
  return tops;
}

std::vector<int> TreeByText::children(int position) const {
  const int power = largest_power_in(position);
  if (power == 1) return {};
  std::vector<int> positions = {position - power / 2};
  if (position < size()) {
    positions.push_back(position + std::min(power / 2, largest_power_up_to(size() - position)));
  }
  return positions;
}

}  // namespace lockstep::schedule::testing
