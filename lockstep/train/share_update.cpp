// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/share_update.h"

#include "lockstep/train/partition.h"

namespace lockstep::train {

namespace {

// Calls body(elements, decays) for every parameter that has some of `own`: those that are its, counted from
// the begin of `own`, and whether its weights decay.
template <typename Body>
void for_each_parameter(const model::FlatLayout& layout, Range own, Body body) {
  for (std::size_t i = 0; i < layout.specs().size(); ++i) {
    const Range both = intersection(own, elements_of(layout.places()[i]));
    if (both.empty()) continue;
    body(Range{both.begin - own.begin, both.end - own.begin}, layout.specs()[i].decays);
  }
}

template <typename Values>
Values part_of(Values of_share, Range elements) {
  return of_share.empty() ? of_share : of_share.subspan(elements.begin, elements.size());
}

template <typename How>
How for_parameter(How how, bool decays) {
  if (!decays) how.weight_decay = 0.0F;
  return how;
}

template <typename How>
std::vector<kernels::OneOfSteps<How>> steps_of(std::span<const ShareStep> steps, Range elements,
                                               bool decays) {
  std::vector<kernels::OneOfSteps<How>> parts;
  for (const ShareStep& step : steps) {
    parts.push_back({.how = for_parameter(std::get<How>(step.how), decays),
                     .gradient = part_of(step.gradients, elements),
                     .gradient_scale = step.gradient_scale});
  }
  return parts;
}

}  // namespace

void update_share(const OptimizerStep& how, const model::FlatLayout& layout, Range own,
                  const ShareState& state, std::span<const float> gradients, float gradient_scale) {
  for_each_parameter(layout, own, [&](Range elements, bool decays) {
    const kernels::Parameters parameters = {
        .master = part_of(state.master, elements),
        .working = state.working == nullptr ? nullptr
                                            : state.working + elements.begin * size_of(state.working_dtype),
        .working_dtype = state.working_dtype,
        .lower = part_of(state.lower, elements),
        .gradient = part_of(gradients, elements),
        .gradient_scale = gradient_scale};
    const std::span<float> first = part_of(state.moments[0], elements);
    if (const auto* adamw = std::get_if<kernels::AdamW>(&how)) {
      kernels::adamw(for_parameter(*adamw, decays), parameters, first, part_of(state.moments[1], elements));
    } else {
      kernels::sgd(for_parameter(std::get<kernels::Sgd>(how), decays), parameters, first);
    }
  });
}

void update_share(std::span<const ShareStep> steps, const model::FlatLayout& layout, Range own,
                  const ShareState& state) {
  if (steps.empty()) return;
  for_each_parameter(layout, own, [&](Range elements, bool decays) {
    const std::span<float> master = part_of(state.master, elements);
    const std::span<float> first = part_of(state.moments[0], elements);
    if (std::holds_alternative<kernels::AdamW>(steps.front().how)) {
      kernels::adamw(steps_of<kernels::AdamW>(steps, elements, decays), master, first,
                     part_of(state.moments[1], elements));
    } else {
      kernels::sgd(steps_of<kernels::Sgd>(steps, elements, decays), master, first);
    }
  });
}

}  // namespace lockstep::train
