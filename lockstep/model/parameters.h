// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/model/block.h"

namespace lockstep::model {

// Where a parameter lies in a flat run of all parameters.
struct Place {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// All parameters of a model, one after the other. Pure arithmetic: every rank comes to the same result.
class FlatLayout {
 public:
  explicit FlatLayout(const Model& model);

  const std::vector<ParameterSpec>& specs() const { return specs_; }
  const std::vector<Place>& places() const { return places_; }  // of the specs
  std::int64_t elements() const { return elements_; }
  // The parameter that the element belongs to.
  const ParameterSpec& at(std::size_t element) const;
  std::size_t blocks() const { return blocks_.size(); }
  // Indices among the specs.
  const std::vector<std::size_t>& of_block(std::size_t block) const { return blocks_[block]; }
  std::size_t head() const { return head_; }

 private:
  std::vector<ParameterSpec> specs_;
  std::vector<Place> places_;
  std::vector<std::vector<std::size_t>> blocks_;
  std::size_t head_ = 0;
  std::int64_t elements_ = 0;
};

// The parameters as blocks want them: views of two flat tensors that others own as well.
class Parameters {
 public:
  // `values`: layout.elements() of the working dtype; `gradients`: as many fp32.
  Parameters(const FlatLayout& layout, const at::Tensor& values, const at::Tensor& gradients);
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  const std::vector<nn::Parameter>& all() const { return all_; }
  BlockParameters of_block(std::size_t block) const { return blocks_[block]; }
  const nn::Parameter& head() const { return all_[head_]; }

 private:
  std::vector<nn::Parameter> all_;
  std::vector<std::vector<const nn::Parameter*>> blocks_;
  std::size_t head_;
};

}  // namespace lockstep::model
