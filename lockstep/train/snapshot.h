// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "lockstep/base/large_memory.h"
#include "lockstep/checkpoint/store/shard_writer.h"
#include "lockstep/train/state_pieces.h"
#include "lockstep/train/weights.h"

namespace lockstep::train {

// What this rank writes of the training state: as it is, or as it was at one moment.
class Snapshot {
 public:
  // Both must outlive this.
  Snapshot(const Holding& holding, const Weights& weights);

  // Makes room for the copy, in the background and where it can: the first one takes no longer than others
  // then.
  void prepare();
  // Copies the state of this moment, so that training can go on while it is written; until the next take().
  std::vector<checkpoint::OutgoingPiece> take();
  // The state itself, read while it is written: training waits meanwhile, and memory for one piece is enough.
  std::vector<checkpoint::OutgoingPiece> in_place();

 private:
  void allocate();
  void copy(int quantity, const StatePiece& piece, std::span<float> to) const;
  using Values = std::function<std::span<const float>(int quantity, std::size_t piece)>;
  std::vector<checkpoint::OutgoingPiece> outgoing(const Values& values) const;
  std::span<float> place_of(int quantity, std::size_t piece) const;

  const Weights& weights_;
  std::vector<StatePiece> pieces_;
  std::vector<std::size_t> begins_;  // by piece, in the copy of a quantity; then their sum
  LargeMemory copy_;                 // of all quantities
  std::vector<float> piece_;         // of the state itself
  std::jthread preparing_;           // copy_
};

}  // namespace lockstep::train
