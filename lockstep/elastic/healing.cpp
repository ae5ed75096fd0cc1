// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/healing.h"

#include <algorithm>
#include <map>
#include <utility>

namespace lockstep::elastic {
namespace {

// Of a piece: which ranks have it, and as their which one.
using Holders = std::vector<std::pair<Rank, std::size_t>>;

// To itself if it can; otherwise givers take turns.
const std::pair<Rank, std::size_t>& giver_for(Rank to, const Holders& holders, std::size_t turn) {
  const auto own = std::ranges::find(holders, to, &Holders::value_type::first);
  return own != holders.end() ? *own : holders[turn % holders.size()];
}

// All pieces of a tensor that anybody has kept, each once.
struct KeptPieces {
  std::vector<const TensorPiece*> pieces;
  bool overlap = false;  // those of workers that have last trained in different generations may
};

bool has_overlap(const std::vector<const TensorPiece*>& pieces) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (count_common(pieces[i]->elements, pieces[j]->elements) > 0) return true;
    }
  }
  return false;
}

// Which of the needed elements are there already.
class Covered {
 public:
  explicit Covered(const Runs& needed) : needed_(needed), elements_(needed.size(), false) {}

  // How many more there are with those of the piece.
  std::size_t add(const Runs& piece) {
    std::size_t more = 0;
    each_common(piece, needed_, [&](std::size_t, std::size_t first, std::size_t count) {
      const auto begin = elements_.begin() + static_cast<std::ptrdiff_t>(first);
      const auto end = begin + static_cast<std::ptrdiff_t>(count);
      more += static_cast<std::size_t>(std::count(begin, end, false));
      std::fill(begin, end, true);
    });
    return more;
  }

 private:
  const Runs& needed_;
  std::vector<bool> elements_;
};

// The pieces that give all of `need`; none when something is not there. Where pieces overlap, those that
// `first` says come first, and those that add nothing are left out.
template <typename First>
std::optional<std::vector<const TensorPiece*>> pieces_for(const TensorPiece& need, const KeptPieces& kept,
                                                          const First& first) {
  std::vector<const TensorPiece*> chosen;
  std::size_t found = 0;
  if (!kept.overlap) {
    for (const TensorPiece* piece : kept.pieces) {
      const std::size_t elements = count_common(piece->elements, need.elements);
      if (elements > 0) chosen.push_back(piece);
      found += elements;
    }
  } else {
    std::vector<const TensorPiece*> in_order = kept.pieces;
    // Not that of ranges, which clang 14 cannot read.
    std::stable_partition(in_order.begin(), in_order.end(), first);
    Covered covered(need.elements);
    for (const TensorPiece* piece : in_order) {
      const std::size_t more = covered.add(piece->elements);
      if (more > 0) chosen.push_back(piece);
      found += more;
    }
  }
  return found == need.elements.size() ? std::optional(chosen) : std::nullopt;
}

}  // namespace

std::size_t count_common(const Runs& a, const Runs& b) {
  std::size_t sum = 0;
  each_common(a, b, [&](std::size_t, std::size_t, std::size_t count) { sum += count; });
  return sum;
}

PieceNumbers numbers_of(const TensorPiece& piece) {
  const Runs& runs = piece.elements;
  return {piece.tensor, runs.first, runs.length, runs.distance, runs.count};
}

TensorPiece piece_of(const PieceNumbers& numbers) {
  const auto& [tensor, first, length, distance, count] = numbers;
  return {tensor, {first, length, distance, count}};
}

std::optional<std::vector<Gift>> plan_gifts(const std::vector<TensorPieces>& kept,
                                            const std::vector<TensorPieces>& needed) {
  std::map<PieceNumbers, Holders> holders;
  std::map<std::size_t, KeptPieces> of_tensor;
  for (std::size_t rank = 0; rank < kept.size(); ++rank) {
    for (std::size_t i = 0; i < kept[rank].size(); ++i) {
      Holders& of_piece = holders[numbers_of(kept[rank][i])];
      if (of_piece.empty()) of_tensor[kept[rank][i].tensor].pieces.push_back(&kept[rank][i]);
      of_piece.emplace_back(static_cast<Rank>(rank), i);
    }
  }
  for (auto& [tensor, of_one] : of_tensor) of_one.overlap = has_overlap(of_one.pieces);
  std::vector<Gift> gifts;
  for (std::size_t rank = 0; rank < needed.size(); ++rank) {
    const auto to = static_cast<Rank>(rank);
    const auto is_own = [&](const TensorPiece* piece) {
      const Holders& of_piece = holders.at(numbers_of(*piece));
      return std::ranges::find(of_piece, to, &Holders::value_type::first) != of_piece.end();
    };
    for (std::size_t i = 0; i < needed[rank].size(); ++i) {
      const TensorPiece& need = needed[rank][i];
      const auto pieces = pieces_for(need, of_tensor[need.tensor], is_own);
      if (!pieces) return std::nullopt;
      for (const TensorPiece* piece : *pieces) {
        const auto& [from, which] = giver_for(to, holders.at(numbers_of(*piece)), rank + gifts.size());
        gifts.push_back({.from = from, .to = to, .kept = which, .needed = i});
      }
    }
  }
  return gifts;
}

std::optional<HealingPlan> plan_healing(std::vector<Kept> kept, const std::vector<TensorPieces>& needed) {
  const auto newest = std::ranges::max_element(kept, {}, &Kept::step);
  if (newest == kept.end() || newest->step == kNoStep) return std::nullopt;
  HealingPlan plan = {.step = newest->step, .teller = static_cast<Rank>(newest - kept.begin()), .gifts = {}};
  std::vector<TensorPieces> counts(kept.size());
  for (std::size_t rank = 0; rank < kept.size(); ++rank) {
    if (kept[rank].step == plan.step) counts[rank] = std::move(kept[rank].pieces);
  }
  std::optional<std::vector<Gift>> gifts = plan_gifts(counts, needed);
  if (!gifts) return std::nullopt;
  plan.gifts = std::move(*gifts);
  return plan;
}

}  // namespace lockstep::elastic
