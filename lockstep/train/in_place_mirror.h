// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/train/mirror.h"
#include "lockstep/train/update_journal.h"

namespace lockstep::train {

// Shares where their owners have them, in memory that outlives these. Read when they are asked for: that of a
// rank that is gone by the next two that are not, that of another by the next one, so that each is in two
// places until all ranks have theirs again. An update that the owner did not bring to its end is ended in
// what is read, with the gradients that it has left.
class InPlaceMirror final : public Mirror {
 public:
  // All ranks of the sharing group together.
  InPlaceMirror(const Holding& holding, Weights& weights);

  void fill() override;
  void take_gradients(const std::vector<Gradients>& own) override;
  void update(const OptimizerStep& how, float gradient_scale) override;
  std::span<const MirroredShare> copies() const override { return {}; }
  std::vector<MirroredShare> take_shares(std::span<const Rank> gone, elastic::Activity* activity) override;

 private:
  // What another rank has shown.
  struct Shown {
    Rank in_world;
    JournalReader journal;
    std::vector<ConstShareArrays> arrays;  // by bucket
  };
  Shown shown_by(Rank owner, const std::vector<std::int64_t>& places) const;
  std::vector<std::int64_t> own_places() const;
  std::optional<transport::Place> shown(ConstBytes memory) const;
  transport::Place show(ConstBytes memory) const;
  ConstBytes memory_of(Rank owner, transport::Place place, std::size_t bytes, std::size_t alignment) const;

  MirroredShare read(Rank owner, const Shown& shown, elastic::Activity* activity) const;
  void read(const Shown& shown, std::size_t bucket, const MirroredShare& share) const;

  const Holding& holding_;
  Weights& weights_;
  const comm::Communicator& group_;          // those that share
  std::vector<std::optional<Shown>> shown_;  // by rank; none of this one
  std::vector<const float*> told_;           // by bucket: gradients whose place is in the journal
  std::uint64_t updates_ = 0;                // since fill()
  OptimizerStep how_;                        // of the last one
  float gradient_scale_ = 1;
};

}  // namespace lockstep::train
