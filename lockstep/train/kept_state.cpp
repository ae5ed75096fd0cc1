// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/kept_state.h"

#include <map>
#include <string>
#include <utility>

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

std::size_t KeptState::bytes_of_own(const Holding& holding, const Weights& weights) {
  return static_cast<std::size_t>(weights.quantities()) *
         elements_in(pieces_of(holding, holding.partition.own)) * sizeof(float);
}

KeptState::KeptState(const Holding& holding, const Weights& weights, LargeMemory own,
                     std::vector<MirroredShare> shares, const Reached& reached, elastic::Activity* activity)
    : reached_(reached), own_(std::move(own)), others_(std::move(shares)) {
  const std::map<std::string, std::size_t> numbers = numbers_of(holding.whole);
  const auto add = [&](int quantity, const StatePiece& piece, std::span<const float> values) {
    pieces_.push_back(
        {tensor_number(holding.whole, quantity, numbers.at(piece.parameter)), piece.in_parameter});
    values_.push_back(values);
  };

  const std::vector<StatePiece> own_pieces = pieces_of(holding, holding.partition.own);
  float* next = reinterpret_cast<float*>(own_.bytes().data());
  for (int quantity = 0; quantity < weights.quantities(); ++quantity) {
    for (const StatePiece& piece : own_pieces) {
      const std::span<float> values(next, piece.share.size());
      weights.copy_quantity(quantity, piece.bucket, piece.share, values);
      add(quantity, piece, values);
      next += values.size();
      if (activity != nullptr) activity->get_on();
    }
  }
  for (const MirroredShare& share : others_) {
    const std::vector<StatePiece> pieces = pieces_of(holding, share.shares());
    for (int quantity = 0; quantity < weights.quantities(); ++quantity) {
      for (const StatePiece& piece : pieces) {
        add(quantity, piece, share.of(quantity, piece.bucket).subspan(piece.share.begin, piece.share.size()));
      }
    }
  }
}

}  // namespace lockstep::train
