// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/group_numbers.h"

#include <algorithm>
#include <new>

#include "lockstep/base/error.h"

namespace lockstep::comm {

std::optional<std::size_t> agreed_number(std::span<const GroupBid> bids, std::size_t from) {
  for (std::size_t i = 0; i < kMostGroups; ++i) {
    const std::size_t number = (from + i) % kMostGroups;
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

GroupNumbers::Entry GroupNumbers::entry(std::size_t number) const {
  const std::lock_guard lock(mutex_);
  return entries_[number];
}

GroupNumbers::State GroupNumbers::state(std::size_t number) const {
  const std::lock_guard lock(mutex_);
  return entries_[number].state;
}

std::uint64_t GroupNumbers::next_sequence() const {
  const std::lock_guard lock(mutex_);
  return next_sequence_;
}

void GroupNumbers::take(std::size_t number) {
  LOCKSTEP_CHECK(try_take(number, entry(number).changes), "a number belongs to one group at a time");
}

bool GroupNumbers::try_take(std::size_t number, std::uint64_t changes) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[number];
  const bool is_free = entry.state == State::fresh || entry.state == State::ended;
  if (!is_free || entry.changes != changes) return false;
  before_[number] = entry.state;
  entry.state = State::taken;
  ++entry.changes;
  return true;
}

void GroupNumbers::put_back(std::size_t number) {
  const std::lock_guard lock(mutex_);
  entries_[number].state = before_[number];
  ++entries_[number].changes;
}

void GroupNumbers::give_back(std::size_t number, const End& end) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[number];
  entry.state = end.failed ? State::failed : State::ended;
  try {
    entry.members.insert(end.members.begin(), end.members.end());
  } catch (const std::bad_alloc&) {
    entry.state = State::failed;  // whom it has had is not known any more
  }
  ++entry.changes;
  next_sequence_ = std::max(next_sequence_, end.next_sequence);
}

}  // namespace lockstep::comm
