// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/pipeline/pass_name.h"

namespace lockstep::schedule {

std::string_view name_of(Pass pass) {
  switch (pass) {
    case Pass::forward:
      return "forward";
    case Pass::backward:
      return "backward";
    case Pass::backward_input:
      return "input-gradient";
    case Pass::backward_weight:
      return "weight-gradient";
  }
  return "";
}

std::optional<Pass> pass_named(std::string_view name) {
  for (const Pass pass : kPasses) {
    if (name_of(pass) == name) return pass;
  }
  return std::nullopt;
}

}  // namespace lockstep::schedule
