// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/mlp/state_names.h"

namespace lockstep::model::mlp {

StateName state_name(const ParameterSpec& parameter) {
  return {.name = parameter.name};
}

bool is_not_trained(std::string_view) {
  return false;
}

}  // namespace lockstep::model::mlp
