// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/llama/state_names.h"

namespace lockstep::model::llama {

// Ours are the names of the files, and the rows of queries and keys have the order that our rotary embedding
// turns.
StateName state_name(const ParameterSpec& parameter) {
  return {.name = parameter.name};
}

bool is_not_trained(std::string_view name) {
  return name == "lm_head.weight" || name.ends_with(".rotary_emb.inv_freq");
}

}  // namespace lockstep::model::llama
