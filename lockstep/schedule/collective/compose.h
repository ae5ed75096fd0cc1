// SPDX-License-Identifier: Apache-2.0
//
// Private to schedule/collective: programs made of programs. A *part* is the program of some ranks (its
// group) on some elements; it is written as if these were all there is, and moved into place here.
#pragma once

#include <vector>

#include "lockstep/base/rank.h"
#include "lockstep/mesh/range.h"
#include "lockstep/schedule/collective/program.h"

namespace lockstep::schedule {

// Where a part belongs in the whole program.
struct Place {
  std::vector<Rank> members;  // part rank g is rank members[g] of the whole
  std::vector<Range>
      view;  // the part's buffer 0 is these ranges of the whole's buffer 0, one after the other
};

// Appends the rounds of `part` (a program of the same rank, so members[part.rank] == whole.rank). Moves that
// cross from one range of the view to the next are cut there, on all ranks alike. The scratch of the part
// becomes scratch of the whole, shared with parts appended before. A part with scratch needs a view of one
// range.
void append(Program& whole, const Program& part, const Place& place);

}  // namespace lockstep::schedule
