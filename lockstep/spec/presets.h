// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "lockstep/spec/run_spec.h"

namespace lockstep::spec {

std::vector<std::string_view> preset_names();

// The model of that name, before fill_model(): what follows from other keys is zero, so that it follows from
// keys that a user gives as well. There must be one (LOCKSTEP_CHECK).
Model preset_model(std::string_view name);

}  // namespace lockstep::spec
