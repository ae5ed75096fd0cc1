// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/share_update.h"

#include <type_traits>

#include "lockstep/train/partition.h"

namespace lockstep::train {

void update_share(const OptimizerStep& how, const model::FlatLayout& layout, Range own,
                  const ShareState& state, std::span<const float> gradients, float gradient_scale) {
  for (std::size_t i = 0; i < layout.specs().size(); ++i) {
    const Range both = intersection(own, elements_of(layout.places()[i]));
    if (both.empty()) continue;
    const std::size_t begin = both.begin - own.begin;
    const auto part_of = [&](auto of_share) {
      return of_share.empty() ? of_share : of_share.subspan(begin, both.size());
    };
    const kernels::Parameters parameters = {
        .master = part_of(state.master),
        .working = state.working == nullptr ? nullptr : state.working + begin * size_of(state.working_dtype),
        .working_dtype = state.working_dtype,
        .lower = part_of(state.lower),
        .gradient = part_of(gradients),
        .gradient_scale = gradient_scale};
    std::visit(
        [&](auto step) {
          if (!layout.specs()[i].decays) step.weight_decay = 0.0F;
          if constexpr (std::is_same_v<decltype(step), kernels::AdamW>) {
            kernels::adamw(step, parameters, part_of(state.moments[0]), part_of(state.moments[1]));
          } else {
            kernels::sgd(step, parameters, part_of(state.moments[0]));
          }
        },
        how);
  }
}

}  // namespace lockstep::train
