// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/train/mirror.h"

namespace lockstep::train {

// Copies of shares, kept up to date by doing their owners' updates here as well.
class CopyMirror final : public Mirror {
 public:
  CopyMirror(const Holding& holding, const Weights& weights);

  void fill() override;
  void take_gradients(const std::vector<Gradients>& own) override;
  void update(const OptimizerStep& how, float gradient_scale) override;
  std::span<const MirroredShare> copies() const override { return shares_; }
  std::vector<MirroredShare> take_shares(std::span<const Rank>, elastic::Activity*) override {
    return std::exchange(shares_, {});
  }

 private:
  // What this rank has goes to its mirror, and what is mirrored here comes to the place of each share.
  using PlaceOf = std::function<std::span<float>(std::size_t share)>;
  std::vector<comm::Work> start_exchange(std::span<const float> own, const PlaceOf& place_of) const;

  const Holding& holding_;
  const Weights& weights_;
  const comm::Communicator& group_;  // those that share
  Rank partner_;                     // mirrors this rank
  std::vector<MirroredShare> shares_;
  std::vector<comm::Buffer> gradients_;  // by share
};

}  // namespace lockstep::train
