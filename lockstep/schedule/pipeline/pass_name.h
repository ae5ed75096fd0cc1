// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "lockstep/schedule/pipeline/pipeline.h"

namespace lockstep::schedule {

// "forward", "backward", "input-gradient" or "weight-gradient": what traces call it.
std::string_view name_of(Pass pass);
std::optional<Pass> pass_named(std::string_view name);

}  // namespace lockstep::schedule
