// SPDX-License-Identifier: Apache-2.0
#include "lockstep/schedule/pipeline/placement.h"

namespace lockstep::schedule {
namespace {

// The second arm of a V runs back through the ranks.
bool runs_back(PlacementShape shape, int chunk) {
  return shape == PlacementShape::v_shape && chunk == 1;
}

}  // namespace

int Placement::part_of(Rank rank, int chunk) const {
  return chunk * stages + (runs_back(shape, chunk) ? stages - 1 - rank : rank);
}

Placement::Holder Placement::holder_of(int part) const {
  const int chunk = part / stages;
  const int along = part % stages;
  return {runs_back(shape, chunk) ? stages - 1 - along : along, chunk};
}

}  // namespace lockstep::schedule
