// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "lockstep/mesh/range.h"

namespace lockstep::schedule {

// Private to schedule/collective: places in a scratch buffer for what comes and goes while a program runs.
class Shelf {
 public:
  // The first free place of this many elements (>= 1).
  Range take(std::size_t elements);
  // Gives back places, or parts of them.
  void give_back(Range range);

  // What the buffer must hold.
  std::size_t elements() const { return elements_; }

 private:
  std::vector<Range> free_;  // below elements_, in order, none next to another
  std::size_t elements_ = 0;
};

}  // namespace lockstep::schedule
