// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "lockstep/schedule/check/check.h"
#include "lockstep/schedule/check/progress.h"

namespace lockstep::schedule {

Cost count_cost(std::span<const Program> programs, const Progress& progress);

// What predict_cost() says otherwise: the first rank that sends more or less, else additions or depth.
std::optional<Violation> compare_with_formulas(const CollectiveSpec& spec, const Cost& counted);

}  // namespace lockstep::schedule
