// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/group_numbers.h"

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::comm {

std::optional<std::size_t> agreed_number(std::span<const GroupBid> bids) {
  for (std::size_t number = 0; number < kMostGroups; ++number) {
    std::int64_t left_over = 0;
    const bool free = std::all_of(bids.begin(), bids.end(), [&](const GroupBid& bid) {
      if (bid.surplus[number] == GroupBid::kTaken) return false;
      left_over += bid.surplus[number];
      return true;
    });
    if (free && left_over == 0) return number;
  }
  return std::nullopt;
}

GroupNumbers::State GroupNumbers::state(std::size_t number) const {
  const std::lock_guard lock(mutex_);
  return states_[number];
}

std::set<Rank> GroupNumbers::members(std::size_t number) const {
  const std::lock_guard lock(mutex_);
  return members_[number];
}

std::uint64_t GroupNumbers::next_sequence() const {
  const std::lock_guard lock(mutex_);
  return next_sequence_;
}

void GroupNumbers::take(std::size_t number) {
  const std::lock_guard lock(mutex_);
  LOCKSTEP_CHECK(states_[number] == State::fresh || states_[number] == State::ended,
                 "a number belongs to one group at a time");
  states_[number] = State::taken;
}

void GroupNumbers::give_back(std::size_t number, const End& end) {
  const std::lock_guard lock(mutex_);
  states_[number] = end.failed ? State::failed : State::ended;
  members_[number].insert(end.members.begin(), end.members.end());
  next_sequence_ = std::max(next_sequence_, end.next_sequence);
}

}  // namespace lockstep::comm
