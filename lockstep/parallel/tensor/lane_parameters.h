// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
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
  // working dtype; `gradients`: as many fp32. Of a parameter that is replicated the first lane's value is
  // used; each lane here has a gradient of it, which is the sum over that lane's run of tokens.
  LaneParameters(const DividedModel& model, const model::FlatLayout& layout, const at::Tensor& values,
                 const at::Tensor& gradients);
  LaneParameters(const LaneParameters&) = delete;
  LaneParameters& operator=(const LaneParameters&) = delete;

  model::BlockParameters of_block(std::size_t block) const { return {blocks_[block], lanes_}; }
  nn::DividedHead head() const { return {head_, vocabulary_}; }  // only when the last block is held

 private:
  void add(const DividedModel& model, const model::FlatLayout& layout, std::size_t index,
           const at::Tensor& values, const at::Tensor& gradients);

  std::size_t lanes_;
  std::vector<std::vector<nn::Parameter>> all_;  // of each spec: one, or one for each lane here
  std::vector<std::vector<const nn::Parameter*>> blocks_;
  std::vector<const nn::Parameter*> head_;
  std::int64_t vocabulary_ = 0;
};

}  // namespace lockstep::parallel
