// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/collective/program.h"

namespace lockstep::schedule {

std::size_t elements_of(const Move& move) {
  if (move.into) return move.into->range.size();
  for (const Source& source : move.sources) {
    if (source.from == kLocal) return source.slice.range.size();
  }
  return 0;
}

}  // namespace lockstep::schedule
