// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "lockstep/model/parameter_spec.h"
#include "lockstep/model/state_name.h"

namespace lockstep::model::gpt {

StateName state_name(const ParameterSpec& parameter);

// What files may hold beside the parameters: the mask of old versions, and the head that is tied.
bool is_not_trained(std::string_view name);

}  // namespace lockstep::model::gpt
