// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "lockstep/schedule/check/network.h"

namespace lockstep::schedule {

// Inside a round no move writes what another one reads or writes, except the in-place exchange of program.h.
// The messages of the network have been matched.
std::optional<Violation> check_hazards(const Network& network);

}  // namespace lockstep::schedule
