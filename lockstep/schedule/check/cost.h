// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "lockstep/schedule/check/check.h"
#include "lockstep/schedule/check/progress.h"

namespace lockstep::schedule {

Cost count_cost(std::span<const Program> programs, const Progress& progress);

}  // namespace lockstep::schedule
