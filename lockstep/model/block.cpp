// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/block.h"

#include <algorithm>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::model {
namespace {

void add_once(std::vector<ParameterSpec>& all, ParameterSpec parameter) {
  const auto known = std::find_if(all.begin(), all.end(),
                                  [&](const ParameterSpec& other) { return other.name == parameter.name; });
  if (known == all.end()) {
    all.push_back(std::move(parameter));
    return;
  }
  LOCKSTEP_CHECK(*known == parameter, fmt::format("two blocks declare {} differently", parameter.name));
}

}  // namespace

std::vector<ParameterSpec> parameters_of(const Model& model) {
  std::vector<ParameterSpec> all;
  for (const auto& block : model.blocks) {
    for (ParameterSpec& parameter : block->parameters()) add_once(all, std::move(parameter));
  }
  add_once(all, model.head.weight);
  return all;
}

}  // namespace lockstep::model
