// SPDX-License-Identifier: Apache-2.0
//
// The formulas of docs/algorithms.md against what the checker counts in programs.
#pragma once

#include <string>

#include "lockstep/schedule/check/check.h"
#include "lockstep/schedule/collective/collective.h"

namespace lockstep::schedule::testing {

// What the formulas for this spec say otherwise than `counted`; empty if nothing.
std::string difference_from_formulas(const CollectiveSpec& spec, const Cost& counted);

}  // namespace lockstep::schedule::testing
