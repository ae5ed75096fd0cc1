// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "lockstep/cli/schedule_gantt.h"

namespace lockstep::cli {

// The same drawing as a picture, with the lines of a caption under it.
std::string draw_svg(const TimedPipeline& timed, std::span<const std::string> caption);

}  // namespace lockstep::cli
