// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "lockstep/elastic/liveness.h"

namespace lockstep::elastic {

// Generations in a row that have ended before their first step although none of their members was lost:
// members that reach the coordinator, but not each other, would join and leave for ever.
class FailedStarts {
 public:
  void add(std::string reason, Time now);
  // A step was decided, or members were lost: what comes is another story.
  void forget() { *this = {}; }

  std::size_t count() const { return count_; }
  const std::string& reason() const { return reason_; }  // of the last one

  // Before that no further one begins: the more have failed, the longer.
  Time next_start() const;
  // Those that may be the reason and hold nothing are better left out.
  bool is_suspicious() const;
  // It will not become better.
  bool is_hopeless(Time patience, Time now) const;
  // "3 generations in a row have ended before their first step: REASON".
  std::string to_string() const;

 private:
  std::size_t count_ = 0;
  Time first_{0};
  Time last_{0};
  std::string reason_;
};

}  // namespace lockstep::elastic
