// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "lockstep/schedule/pipeline/pipeline.h"

namespace lockstep::schedule {

// "forward", "backward", "input-gradient" or "weight-gradient": what traces call it.
std::string_view name_of(Pass pass);

}  // namespace lockstep::schedule
