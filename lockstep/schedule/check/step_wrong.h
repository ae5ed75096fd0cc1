// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

namespace lockstep::schedule {

// How the parts of a check of a step tell the first thing that is wrong.
struct StepWrong {
  std::string reason;
};

inline void require(bool holds, std::string reason) {
  if (!holds) throw StepWrong{std::move(reason)};
}

}  // namespace lockstep::schedule
