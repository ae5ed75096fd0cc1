// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/base/large_memory.h"
#include "lockstep/checkpoint/store/manifest.h"
#include "lockstep/elastic/activity.h"
#include "lockstep/elastic/healing.h"
#include "lockstep/train/mirrored_share.h"
#include "lockstep/train/weights.h"

namespace lockstep::train {

// Tensors of a training state have numbers here: that of a parameter of the whole model among its parameters,
// plus as many as there are parameters for each quantity before (values, then what the optimizer remembers).
std::size_t tensor_number(const model::FlatLayout& whole, int quantity, std::size_t parameter);

// How far a run has come, and what its last step came to. Goes from rank to rank as its bytes.
struct Reached {
  checkpoint::Progress progress;
  std::optional<checkpoint::LastStep> last;  // none: nobody knows, or there was no step
};

// The part of a training state that a process has held, in memory of its own: what is left of a run when its
// communicator is not.
class KeptState {
 public:
  KeptState() = default;  // nothing
  // The memory that is needed for what a rank holds.
  static std::size_t bytes_of_own(const Holding& holding, const Weights& weights);
  // What this rank holds, copied to `own`, and what it has of others. Each piece that was copied is told to
  // `activity`, if there is one.
  KeptState(const Holding& holding, const Weights& weights, LargeMemory own,
            std::vector<MirroredShare> shares, const Reached& reached, elastic::Activity* activity);

  const std::optional<Reached>& reached() const { return reached_; }
  const elastic::TensorPieces& pieces() const { return pieces_; }
  // In the order of the piece's elements.
  std::span<const float> values_of(std::size_t piece) const { return values_[piece]; }

 private:
  std::optional<Reached> reached_;
  elastic::TensorPieces pieces_;
  std::vector<std::span<const float>> values_;  // by piece, in the memory below
  LargeMemory own_;
  std::vector<MirroredShare> others_;
};

}  // namespace lockstep::train
