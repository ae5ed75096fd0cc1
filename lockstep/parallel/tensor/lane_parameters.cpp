// SPDX-License-Identifier: Apache-2.0
#include "lockstep/parallel/tensor/lane_parameters.h"

#include "lockstep/base/error.h"

namespace lockstep::parallel {

LaneParameters::LaneParameters(const DividedModel& model, const model::FlatLayout& layout,
                               const at::Tensor& values, const at::Tensor& gradients)
    : lanes_(static_cast<std::size_t>(values.size(0))) {
  LOCKSTEP_CHECK(values.dim() == 2 && values.size(1) == layout.elements() &&
                 gradients.sizes() == values.sizes() && values.size(0) <= model.lanes());
  for (std::size_t i = 0; i < layout.specs().size(); ++i) add(model, layout, i, values, gradients);
  const auto in_lane = [&](std::size_t index, std::size_t lane) {
    return &all_[index][all_[index].size() == 1 ? 0 : lane];
  };
  for (std::size_t block = 0; block < layout.blocks(); ++block) {
    std::vector<const nn::Parameter*>& list = blocks_.emplace_back();
    for (std::size_t lane = 0; lane < lanes_; ++lane) {
      for (const std::size_t index : layout.of_block(block)) list.push_back(in_lane(index, lane));
    }
  }
  const bool has_head = !layout.of_block(layout.blocks() - 1).empty();
  if (!has_head) return;
  for (std::size_t lane = 0; lane < lanes_; ++lane) head_.push_back(in_lane(layout.head(), lane));
  vocabulary_ = model.whole(layout.specs()[layout.head()].name).shape[0];
}

void LaneParameters::add(const DividedModel& model, const model::FlatLayout& layout, std::size_t index,
                         const at::Tensor& values, const at::Tensor& gradients) {
  const model::ParameterSpec& spec = layout.specs()[index];
  const auto [first, count] = layout.places()[index];
  const auto value_in = [&, from = first, size = count](std::int64_t lane) {
    return values[lane].narrow(0, from, size).view(spec.shape).detach().requires_grad_();
  };
  std::vector<std::int64_t> stacked = spec.shape;
  stacked.insert(stacked.begin(), values.size(0));
  const at::Tensor gradient = gradients.narrow(1, first, count).view(stacked);
  std::vector<nn::Parameter>& parameters = all_.emplace_back();
  if (model.lanes() > 1 && model.shard(spec.name, 0).replicated) {
    parameters.push_back({spec.name, value_in(0), gradient});
    return;
  }
  for (std::int64_t lane = 0; lane < values.size(0); ++lane) {
    parameters.push_back({spec.name, value_in(lane), gradient[lane]});
  }
}

}  // namespace lockstep::parallel
