// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/compose.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/schedule/collective/moves.h"

namespace lockstep::schedule {
namespace {

class Mover {
 public:
  Mover(Program& whole, const Program& part, const Place& place)
      : place_(place), part_scratch_(part.scratch_from), whole_scratch_(whole.scratch_from) {
    LOCKSTEP_CHECK(part_scratch_ <= 1 && place.members[part.rank] == whole.rank);
    const bool has_scratch = part.buffer_elements.size() > part_scratch_;
    LOCKSTEP_CHECK(place.view.size() <= 1 || !has_scratch, "scratch cannot follow a view of several ranges");
    for (std::size_t i = part_scratch_; i < part.buffer_elements.size(); ++i) {
      const std::size_t target = i - part_scratch_ + whole_scratch_;
      if (target >= whole.buffer_elements.size()) whole.buffer_elements.resize(target + 1, 0);
      whole.buffer_elements[target] = std::max(whole.buffer_elements[target], part.buffer_elements[i]);
    }
  }

  Round moved(const Round& round) const {
    Round result;
    for (const Move& move : round) {
      for (Range piece : pieces_of(move)) result.push_back(moved(move, piece));
    }
    return result;
  }

 private:
  // The elements of the move, counted from its first, cut where the view jumps.
  std::vector<Range> pieces_of(const Move& move) const {
    const std::size_t size = elements_of(move);
    if (place_.view.size() <= 1) return {{0, size}};
    const std::size_t begin = common_begin(move);
    std::vector<Range> pieces;
    std::size_t at = 0;
    for (const Range& range : place_.view) {
      const Range inside = intersection({at, at + range.size()}, {begin, begin + size});
      if (!inside.empty()) pieces.push_back({inside.begin - begin, inside.end - begin});
      at += range.size();
    }
    return pieces;
  }

  // All local slices of a move that may be cut are the same, or its peers would not know where the cuts are.
  static std::size_t common_begin(const Move& move) {
    std::vector<Range> ranges;
    if (move.into) ranges.push_back(move.into->range);
    for (const Source& source : move.sources) {
      if (source.from == kLocal) ranges.push_back(source.slice.range);
    }
    for (const Range& range : ranges) {
      LOCKSTEP_CHECK(range == ranges.front(), "a move within a view has one range");
    }
    return ranges.front().begin;
  }

  Move moved(const Move& move, Range piece) const {
    Move result = move;
    for (Source& source : result.sources) {
      if (source.from == kLocal) {
        source.slice = moved(source.slice, piece);
      } else {
        source.from = place_.members[source.from];
      }
    }
    if (result.into) result.into = moved(*result.into, piece);
    for (Rank& peer : result.send_to) peer = place_.members[peer];
    return result;
  }

  Slice moved(const Slice& slice, Range piece) const {
    const Range part{slice.range.begin + piece.begin, slice.range.begin + piece.end};
    if (slice.buffer >= part_scratch_) return {slice.buffer - part_scratch_ + whole_scratch_, part};
    std::size_t at = 0;
    for (const Range& range : place_.view) {
      if (part.begin < at + range.size()) {
        return data({part.begin - at + range.begin, part.end - at + range.begin});
      }
      at += range.size();
    }
    check_failed("slice inside view", "a part reaches beyond its view");
  }

  const Place& place_;
  std::uint32_t part_scratch_;
  std::uint32_t whole_scratch_;
};

}  // namespace

void append(Program& whole, const Program& part, const Place& place) {
  const Mover mover(whole, part, place);
  for (const Round& round : part.rounds) add(whole, mover.moved(round));
}

}  // namespace lockstep::schedule
