// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/share_update.h"

#include <algorithm>
#include <type_traits>

#include "lockstep/train/partition.h"

namespace lockstep::train {

ShareState part_of(const ShareState& state, Range elements) {
  const auto part = [&](auto of_all) {
    return of_all.empty() ? of_all : of_all.subspan(elements.begin, elements.size());
  };
  ShareState result = {.master = part(state.master),
                       .working = state.working == nullptr
                                      ? nullptr
                                      : state.working + elements.begin * size_of(state.working_dtype),
                       .working_dtype = state.working_dtype,
                       .lower = part(state.lower),
                       .moments = {}};
  for (const std::span<float> moment : state.moments) result.moments.push_back(part(moment));
  return result;
}

void update_share(const OptimizerStep& how, const model::FlatLayout& layout, Range own,
                  const ShareState& state, std::span<const float> gradients, float gradient_scale) {
  // Places are in order, and a journal has many runs: only those that overlap this one are looked at.
  const std::vector<model::Place>& places = layout.places();
  const auto first = std::partition_point(places.begin(), places.end(), [&](const model::Place& place) {
    return elements_of(place).end <= own.begin;
  });
  for (auto place = first; place != places.end() && elements_of(*place).begin < own.end; ++place) {
    const Range both = intersection(own, elements_of(*place));
    if (both.empty()) continue;
    const model::ParameterSpec& spec = layout.specs()[static_cast<std::size_t>(place - places.begin())];
    const Range in_share = {both.begin - own.begin, both.end - own.begin};
    const ShareState part = part_of(state, in_share);
    const kernels::Parameters parameters = {.master = part.master,
                                            .working = part.working,
                                            .working_dtype = part.working_dtype,
                                            .lower = part.lower,
                                            .gradient = gradients.subspan(in_share.begin, in_share.size()),
                                            .gradient_scale = gradient_scale};
    std::visit(
        [&](auto step) {
          if (!spec.decays) step.weight_decay = 0.0F;
          if constexpr (std::is_same_v<decltype(step), kernels::AdamW>) {
            kernels::adamw(step, parameters, part.moments[0], part.moments[1]);
          } else {
            kernels::sgd(step, parameters, part.moments[0]);
          }
        },
        how);
  }
}

}  // namespace lockstep::train
