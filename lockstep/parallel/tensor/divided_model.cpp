// SPDX-License-Identifier: Apache-2.0
#include "lockstep/parallel/tensor/divided_model.h"

#include <memory>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::parallel {
namespace {

class BlockOfLane final : public model::Block {
 public:
  BlockOfLane(const model::Block& whole, std::vector<model::ParameterSpec> parameters)
      : whole_(whole), parameters_(std::move(parameters)) {}

  std::vector<model::ParameterSpec> parameters() const override { return parameters_; }
  at::Tensor forward(const at::Tensor& hidden, const model::Batch& batch,
                     model::BlockParameters parameters) const override {
    return whole_.forward(hidden, batch, parameters);
  }

 private:
  const model::Block& whole_;
  std::vector<model::ParameterSpec> parameters_;
};

}  // namespace

DividedModel::DividedModel(const model::Model& whole, std::span<const model::ShardRule> rules,
                           const DividedSizes& sizes, int lanes)
    : rules_(rules), sizes_(sizes), lanes_(lanes) {
  check_tensor_lanes(sizes, lanes, /*workers=*/1);
  for (const model::ParameterSpec& spec : model::parameters_of(whole)) specs_.emplace(spec.name, spec);
  for (const auto& block : whole.blocks) {
    std::vector<model::ParameterSpec> parameters = block->parameters();
    for (model::ParameterSpec& spec : parameters) spec = in_lane(spec);
    of_lane_.blocks.push_back(std::make_unique<BlockOfLane>(*block, std::move(parameters)));
  }
  of_lane_.head = {in_lane(whole.head.weight)};
}

model::HeldLanes DividedModel::held(int first, int count) const {
  return {
      .lanes = lanes_, .first = first, .count = count, .sharing = [this](const model::ParameterSpec& spec) {
        return sharing(spec.name);
      }};
}

const model::ParameterSpec& DividedModel::whole(std::string_view parameter) const {
  const auto found = specs_.find(parameter);
  LOCKSTEP_CHECK(found != specs_.end(), "the model has no parameter " + std::string(parameter));
  return found->second;
}

LaneShard DividedModel::shard(std::string_view parameter, int lane) const {
  return shard_of(whole(parameter), model::rule_of(rules_, parameter), sizes_, lanes_, lane);
}

model::ParameterSpec DividedModel::in_lane(const model::ParameterSpec& spec) const {
  model::ParameterSpec part = spec;
  part.shape = shard(spec.name, 0).shape;
  return part;
}

}  // namespace lockstep::parallel
