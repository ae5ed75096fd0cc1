// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/snapshot.h"

#include <exception>

#include "lockstep/train/state_names.h"

namespace lockstep::train {

Snapshot::Snapshot(const Holding& holding, const Weights& weights)
    : weights_(weights), pieces_(pieces_to_write(holding)), begins_{0} {
  for (const StatePiece& piece : pieces_) begins_.push_back(begins_.back() + piece.share.size());
}

void Snapshot::copy(int quantity, const StatePiece& piece, std::span<float> to) const {
  weights_.copy_quantity(quantity, piece.bucket, piece.share, to);
}

std::span<float> Snapshot::place_of(int quantity, std::size_t piece) const {
  const std::size_t begin = static_cast<std::size_t>(quantity) * begins_.back() + begins_[piece];
  return {reinterpret_cast<float*>(copy_.bytes().data()) + begin, pieces_[piece].share.size()};
}

// Kept for all copies.
void Snapshot::allocate() {
  if (!copy_.bytes().empty()) return;
  copy_ = LargeMemory(static_cast<std::size_t>(weights_.quantities()) * begins_.back() * sizeof(float));
}

void Snapshot::prepare() {
  try {
    allocate();
    preparing_ = std::jthread([this](const std::stop_token& stop) { copy_.take_room(stop); });
  } catch (const std::exception&) {
    // No memory or no thread now: take() tries again.
  }
}

std::vector<checkpoint::OutgoingPiece> Snapshot::take() {
  if (preparing_.joinable()) preparing_.join();
  allocate();
  for (int quantity = 0; quantity < weights_.quantities(); ++quantity) {
    for (std::size_t i = 0; i < pieces_.size(); ++i) copy(quantity, pieces_[i], place_of(quantity, i));
  }
  return outgoing([this](int quantity, std::size_t piece) { return place_of(quantity, piece); });
}

std::vector<checkpoint::OutgoingPiece> Snapshot::in_place() {
  preparing_.request_stop();
  return outgoing([this](int quantity, std::size_t piece) -> std::span<const float> {
    piece_.resize(pieces_[piece].share.size());
    copy(quantity, pieces_[piece], piece_);
    return piece_;
  });
}

std::vector<checkpoint::OutgoingPiece> Snapshot::outgoing(const Values& values) const {
  std::vector<checkpoint::OutgoingPiece> outgoing;
  for (int quantity = 0; quantity < weights_.quantities(); ++quantity) {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const std::string& parameter = pieces_[i].parameter;
      outgoing.push_back({.tensor = quantity == 0
                                        ? value_tensor(parameter)
                                        : moment_tensor(quantity - 1, weights_.moments(), parameter),
                          .elements = pieces_[i].in_parameter,
                          .values = [values, quantity, i] { return values(quantity, i); }});
    }
  }
  return outgoing;
}

}  // namespace lockstep::train
