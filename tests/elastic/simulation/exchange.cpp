// SPDX-License-Identifier: Apache-2.0
#include "tests/elastic/simulation/exchange.h"

namespace lockstep::elastic::simulation {

std::optional<Healed> heal(const std::map<int, DataMessage>& offers, int rank) {
  const int ranks = static_cast<int>(offers.size());
  std::vector<Kept> kept;
  std::vector<TensorPieces> needed;
  for (const auto& [from, offer] : offers) {
    kept.push_back({.step = offer.step, .pieces = tensor_pieces(offer.pieces)});
    needed.push_back(tensor_pieces(cells_to_hold(from, ranks)));
  }
  const std::optional<HealingPlan> plan = plan_healing(kept, needed);
  if (!plan) return std::nullopt;
  Healed healed = {.step = plan->step, .cells = {}};
  for (const Gift& gift : plan->gifts) {
    if (gift.to != rank) continue;
    const TensorPiece& given = kept[static_cast<std::size_t>(gift.from)].pieces[gift.kept];
    const TensorPiece& wanted = needed[static_cast<std::size_t>(gift.to)][gift.needed];
    each_common(given.elements, wanted.elements, [&](std::size_t, std::size_t first, std::size_t count) {
      for (std::size_t i = first; i < first + count; ++i) {
        const int cell = static_cast<int>(wanted.elements.first + i);
        set_half(healed.cells[cell], wanted.tensor,
                 half_of(offers.at(gift.from).cells.at(cell), given.tensor));
      }
    });
  }
  return healed;
}

}  // namespace lockstep::elastic::simulation
