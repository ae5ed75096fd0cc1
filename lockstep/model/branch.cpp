// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/branch.h"

#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/nn/bias.h"
#include "lockstep/nn/embedding.h"
#include "lockstep/nn/fan.h"
#include "lockstep/nn/linear.h"
#include "lockstep/nn/linear_sum.h"

namespace lockstep::model {
namespace {

void check_lanes(const nn::Lanes& lanes, const Batch& batch, const BlockParameters& parameters) {
  LOCKSTEP_CHECK(static_cast<std::size_t>(lanes.here()) == parameters.lanes(),
                 "a block has parameters for other lanes than are computed here");
  LOCKSTEP_CHECK(batch.cache == nullptr || !lanes.several(), "a cache is for one lane");
}

}  // namespace

at::Tensor LaneBranch::linear(const at::Tensor& input, std::size_t weight,
                              std::optional<std::size_t> bias) const {
  return nn::linear(input, *p[weight], bias ? p[*bias] : nullptr, additions);
}

at::Tensor over_lanes(const at::Tensor& x, const Batch& batch, BlockParameters parameters,
                      const LastLinear& last, const std::function<at::Tensor(const LaneBranch&)>& of_lane) {
  const nn::Lanes lanes = batch.lanes();
  check_lanes(lanes, batch, parameters);
  if (!lanes.several()) {
    const LaneBranch lane = {x, parameters.of_lane(0), nullptr};
    return lane.linear(of_lane(lane), last.weight, last.bias);
  }
  const nn::Fan fan = nn::fan_out(x, batch.tokens.size(0), lanes);
  std::vector<at::Tensor> inputs;
  for (std::size_t i = 0; i < fan.inputs.size(); ++i) {
    inputs.push_back(of_lane({fan.inputs[i], parameters.of_lane(i), fan.additions}));
  }
  const at::Tensor sum = nn::linear_sum({inputs, parameters.parts(last.weight), fan.additions}, lanes);
  return last.bias ? nn::add_bias(sum, parameters.shared(*last.bias), lanes) : sum;
}

at::Tensor token_rows(const Batch& batch, BlockParameters parameters, const TokenTables& tables) {
  const nn::Lanes lanes = batch.lanes();
  check_lanes(lanes, batch, parameters);
  if (!lanes.several()) {
    const nn::Parameter* places = tables.places ? parameters[*tables.places] : nullptr;
    return nn::embedding(batch.tokens, *parameters[tables.table], places, batch.first_place);
  }
  const at::Tensor rows =
      nn::embedding(batch.tokens, {parameters.parts(tables.table), tables.vocabulary}, lanes);
  if (!tables.places) return rows;
  return nn::add_places(rows, parameters.shared(*tables.places),
                        {.length = batch.tokens.size(1), .first = batch.first_place}, lanes);
}

}  // namespace lockstep::model
