// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/rendezvous/environment.h"

namespace lockstep::cli {

// All LOCKSTEP_ variables that the library and its programs read.
std::vector<std::string> known_variables();

// Pure. One sentence for each LOCKSTEP_ variable of the environment that is not among them, with the one that
// was probably meant.
std::vector<std::string> unread_variables(const rendezvous::Environment& environment);

}  // namespace lockstep::cli
