// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/kept_state.h"

#include <algorithm>
#include <map>
#include <string>

#include "lockstep/train/state_pieces.h"

namespace lockstep::train {
namespace {

std::map<std::string, std::size_t> numbers_of(const model::FlatLayout& whole) {
  std::map<std::string, std::size_t> numbers;
  for (std::size_t i = 0; i < whole.specs().size(); ++i) numbers[whole.specs()[i].name] = i;
  return numbers;
}

std::size_t elements_in(const std::vector<StatePiece>& pieces) {
  std::size_t sum = 0;
  for (const StatePiece& piece : pieces) sum += piece.share.size();
  return sum;
}

}  // namespace

std::size_t tensor_number(const model::FlatLayout& whole, int quantity, std::size_t parameter) {
  return static_cast<std::size_t>(quantity) * whole.specs().size() + parameter;
}

KeptState::KeptState(const Holding& holding, const Weights& weights, std::span<const MirroredShare> shares,
                     const Reached& reached)
    : reached_(reached) {
  const std::vector<StatePiece> own = pieces_of(holding, holding.partition.own);
  std::vector<std::vector<StatePiece>> mirrored;
  std::size_t elements = elements_in(own);
  for (const MirroredShare& share : shares) {
    mirrored.push_back(pieces_of(holding, share.shares()));
    elements += elements_in(mirrored.back());
  }
  values_ = LargeMemory(static_cast<std::size_t>(weights.quantities()) * elements * sizeof(float));

  const std::map<std::string, std::size_t> numbers = numbers_of(holding.whole);
  std::size_t filled = 0;
  const auto next = [&](int quantity, const StatePiece& piece) {
    pieces_.push_back(
        {tensor_number(holding.whole, quantity, numbers.at(piece.parameter)), piece.in_parameter});
    begins_.push_back(filled);
    float* place = reinterpret_cast<float*>(values_.bytes().data()) + filled;
    filled += piece.share.size();
    return std::span(place, piece.share.size());
  };
  for (int quantity = 0; quantity < weights.quantities(); ++quantity) {
    for (const StatePiece& piece : own) {
      weights.copy_quantity(quantity, piece.bucket, piece.share, next(quantity, piece));
    }
    for (std::size_t share = 0; share < mirrored.size(); ++share) {
      for (const StatePiece& piece : mirrored[share]) {
        const std::span<const float> values = shares[share].of(quantity, piece.bucket);
        std::ranges::copy(values.subspan(piece.share.begin, piece.share.size()),
                          next(quantity, piece).begin());
      }
    }
  }
}

std::span<const float> KeptState::values_of(std::size_t piece) const {
  return {reinterpret_cast<const float*>(values_.bytes().data()) + begins_[piece],
          pieces_[piece].elements.size()};
}

}  // namespace lockstep::train
