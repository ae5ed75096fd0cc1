// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/parameters.h"

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::model {
namespace {

std::size_t index_of(const std::vector<ParameterSpec>& specs, const std::string& name) {
  const auto found =
      std::find_if(specs.begin(), specs.end(), [&](const ParameterSpec& spec) { return spec.name == name; });
  return static_cast<std::size_t>(found - specs.begin());
}

}  // namespace

FlatLayout::FlatLayout(const Model& model) : specs_(parameters_of(model)) {
  for (const ParameterSpec& spec : specs_) {
    places_.push_back({.first = elements_, .count = spec.elements()});
    elements_ += spec.elements();
  }
  for (const auto& block : model.blocks) {
    std::vector<std::size_t>& indices = blocks_.emplace_back();
    for (const ParameterSpec& spec : block->parameters()) indices.push_back(index_of(specs_, spec.name));
  }
  head_ = index_of(specs_, model.head.weight.name);
}

const ParameterSpec& FlatLayout::at(std::size_t element) const {
  const auto behind = std::upper_bound(
      places_.begin(), places_.end(), static_cast<std::int64_t>(element),
      [](std::int64_t wanted, const Place& place) { return wanted < place.first + place.count; });
  LOCKSTEP_CHECK(behind != places_.end(), "there is no such element");
  return specs_[static_cast<std::size_t>(behind - places_.begin())];
}

Parameters::Parameters(const FlatLayout& layout, const at::Tensor& values, const at::Tensor& gradients)
    : head_(layout.head()) {
  LOCKSTEP_CHECK(values.numel() == layout.elements() && gradients.numel() == layout.elements());
  for (std::size_t i = 0; i < layout.specs().size(); ++i) {
    const auto [first, count] = layout.places()[i];
    const ParameterSpec& spec = layout.specs()[i];
    all_.push_back({.name = spec.name,
                    .value = values.narrow(0, first, count).view(spec.shape).detach().requires_grad_(),
                    .gradient = gradients.narrow(0, first, count).view(spec.shape)});
  }
  for (std::size_t block = 0; block < layout.blocks(); ++block) {
    std::vector<const nn::Parameter*>& mine = blocks_.emplace_back();
    for (std::size_t index : layout.of_block(block)) mine.push_back(&all_[index]);
  }
}

}  // namespace lockstep::model
