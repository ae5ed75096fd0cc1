// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>

#include "tests/elastic/simulation/data_message.h"

namespace lockstep::elastic::simulation {

struct Healed {
  std::int64_t step = 0;
  Cells cells;
};

// What `rank` gets when all have made their offers, by the plan that training uses. None when something is
// not there.
std::optional<Healed> heal(const std::map<int, DataMessage>& offers, int rank);

}  // namespace lockstep::elastic::simulation
