// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/model/parameters.h"
#include "lockstep/nn/head_loss.h"
#include "lockstep/parallel/tensor/divided_model.h"

namespace lockstep::parallel {

// The parameters of the lanes that are computed here, as blocks want them: views of two tensors that others
// own as well.
class LaneParameters {
 public:
  // `layout`: of some or all blocks of model.of_lane(). `values`: [lanes here, layout.elements()] of the
  // working dtype; `gradients`: as many fp32. Lanes that share a parameter have a copy each, of which all are
  // equal, and gradients of their own (LaneShard::sharing).
  LaneParameters(const DividedModel& model, const model::FlatLayout& layout, const at::Tensor& values,
                 const at::Tensor& gradients);

  model::BlockParameters of_block(std::size_t block) const { return {blocks_[block], of_lane_.size()}; }
  nn::DividedHead head() const { return {head_, vocabulary_}; }  // only when the last block is held

 private:
  std::vector<std::unique_ptr<const model::Parameters>> of_lane_;  // of each lane here
  std::vector<std::vector<const nn::Parameter*>> blocks_;
  std::vector<const nn::Parameter*> head_;
  std::int64_t vocabulary_ = 0;
};

}  // namespace lockstep::parallel
