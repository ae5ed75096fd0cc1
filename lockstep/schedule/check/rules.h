// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "lockstep/schedule/check/check.h"

namespace lockstep::schedule {

// The rules of program.h that concern one move of one rank alone, and the buffers that the contract of the
// collective asks for. What passes can be read without further checks of bounds or peers.
std::optional<Violation> check_rules(const CollectiveSpec& spec, std::span<const Program> programs);

}  // namespace lockstep::schedule
