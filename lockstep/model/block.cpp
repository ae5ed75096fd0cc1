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

std::vector<const nn::Parameter*> BlockParameters::parts(std::size_t index) const {
  std::vector<const nn::Parameter*> parts;
  for (std::size_t lane = 0; lane < lanes_; ++lane) parts.push_back(of_lane(lane)[index]);
  return parts;
}

nn::Parameter BlockParameters::shared(std::size_t index) const {
  nn::Parameter parameter = *all_[index];
  for (const nn::Parameter* part : parts(index)) parameter.by_lane.push_back(part->gradient);
  return parameter;
}

std::vector<ParameterSpec> parameters_of(const Model& model) {
  std::vector<ParameterSpec> all;
  for (const auto& block : model.blocks) {
    for (ParameterSpec& parameter : block->parameters()) add_once(all, std::move(parameter));
  }
  add_once(all, model.head.weight);
  return all;
}

}  // namespace lockstep::model
