// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "lockstep/model/parameter_spec.h"
#include "lockstep/model/state_name.h"

namespace lockstep::model::mlp {

StateName state_name(const ParameterSpec& parameter);

// Files hold nothing beside the parameters.
bool is_not_trained(std::string_view name);

}  // namespace lockstep::model::mlp
