// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/mirror.h"

#include "lockstep/train/copy_mirror.h"
#include "lockstep/train/in_place_mirror.h"

namespace lockstep::train {

bool Mirror::is_needed(const Holding& holding) {
  const Groups& groups = holding.groups;
  return holding.partition.shards_update && groups.sharing.size() > 1 && groups.copies.size() == 1;
}

bool Mirror::is_in_place(const Holding& holding) {
  const comm::Communicator& group = holding.groups.sharing;
  for (Rank peer = 0; peer < group.size(); ++peer) {
    if (peer != group.rank() && !group.memory_lasts(peer)) return false;
  }
  return true;
}

std::unique_ptr<Mirror> Mirror::make(const Holding& holding, Weights& weights) {
  if (weights.journal() != nullptr) return std::make_unique<InPlaceMirror>(holding, weights);
  return std::make_unique<CopyMirror>(holding, weights);
}

}  // namespace lockstep::train
