// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/shelf.h"

#include <algorithm>

namespace lockstep::schedule {

Range Shelf::take(std::size_t elements) {
  const auto found =
      std::ranges::find_if(free_, [elements](const Range& range) { return range.size() >= elements; });
  if (found != free_.end()) {
    const Range place{found->begin, found->begin + elements};
    found->begin = place.end;
    if (found->empty()) free_.erase(found);
    return place;
  }
  // Beyond the end, with what is free before it.
  std::size_t begin = elements_;
  if (!free_.empty() && free_.back().end == elements_) {
    begin = free_.back().begin;
    free_.pop_back();
  }
  elements_ = begin + elements;
  return {begin, elements_};
}

void Shelf::give_back(Range range) {
  auto after = std::ranges::lower_bound(free_, range.begin, {}, &Range::begin);
  if (after != free_.end() && after->begin == range.end) {
    range.end = after->end;
    after = free_.erase(after);
  }
  if (after != free_.begin() && std::prev(after)->end == range.begin) {
    std::prev(after)->end = range.end;
  } else {
    free_.insert(after, range);
  }
}

}  // namespace lockstep::schedule
