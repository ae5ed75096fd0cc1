// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/gpt/state_names.h"

namespace lockstep::model::gpt {

StateName state_name(const ParameterSpec& parameter) {
  // The layers of GPT-2 were written as convolutions of width 1, whose weights are [in, out].
  const bool is_convolution = parameter.name.starts_with("h.") && parameter.shape.size() == 2;
  return {
      .name = "transformer." + parameter.name, .other_name = parameter.name, .transposed = is_convolution};
}

bool is_not_trained(std::string_view name) {
  return name == "lm_head.weight" || name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

}  // namespace lockstep::model::gpt
