// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/branch.h"

#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/nn/bias.h"
#include "lockstep/nn/embedding.h"
#include "lockstep/nn/fan.h"

namespace lockstep::model {
namespace {

void check_lanes(const nn::Lanes& lanes, const Batch& batch, const BlockParameters& parameters) {
  LOCKSTEP_CHECK(static_cast<std::size_t>(lanes.here()) == parameters.lanes(),
                 "a block has parameters for other lanes than are computed here");
  LOCKSTEP_CHECK(batch.cache == nullptr || !lanes.several(), "a cache is for one lane");
}

}  // namespace

at::Tensor over_lanes(const at::Tensor& x, const Batch& batch, BlockParameters parameters,
                      std::optional<std::size_t> bias,
                      const std::function<at::Tensor(const LaneBranch&)>& of_lane) {
  const nn::Lanes lanes = batch.lanes();
  check_lanes(lanes, batch, parameters);
  if (!lanes.several()) return of_lane({x, parameters.of_lane(0), bias ? parameters[*bias] : nullptr});
  const std::vector<at::Tensor> inputs = nn::fan_out(x, batch.tokens.size(0), lanes);
  std::vector<at::Tensor> partials;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    partials.push_back(of_lane({inputs[i], parameters.of_lane(i), nullptr}));
  }
  const at::Tensor sum = nn::fan_in(partials, lanes);
  return bias ? nn::add_bias(sum, parameters.shared(*bias), lanes) : sum;
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
