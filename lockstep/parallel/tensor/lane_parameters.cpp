// SPDX-License-Identifier: Apache-2.0
#include "lockstep/parallel/tensor/lane_parameters.h"

#include "lockstep/base/error.h"

namespace lockstep::parallel {

LaneParameters::LaneParameters(const DividedModel& model, const model::FlatLayout& layout,
                               const at::Tensor& values, const at::Tensor& gradients)
    : blocks_(layout.blocks()) {
  LOCKSTEP_CHECK(values.dim() == 2 && gradients.sizes() == values.sizes() && values.size(0) <= model.lanes());
  const bool has_head = !layout.of_block(layout.blocks() - 1).empty();
  for (std::int64_t lane = 0; lane < values.size(0); ++lane) {
    of_lane_.push_back(std::make_unique<const model::Parameters>(layout, values[lane], gradients[lane]));
    const model::Parameters& parameters = *of_lane_.back();
    for (std::size_t block = 0; block < layout.blocks(); ++block) {
      for (const std::size_t index : layout.of_block(block)) {
        blocks_[block].push_back(&parameters.all()[index]);
      }
    }
    if (has_head) head_.push_back(&parameters.head());
  }
  if (has_head) vocabulary_ = model.whole(layout.specs()[layout.head()].name).shape[0];
}

}  // namespace lockstep::parallel
