// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/rank.h"
#include "lockstep/elastic/healing.h"
#include "lockstep/train/kept_state.h"
#include "lockstep/train/mirror.h"
#include "lockstep/train/weights.h"

namespace lockstep::train {

// Nothing that this rank holds can be trusted: it is not what the other ranks have which should have the
// same, or not what its journal says. Others get a CommError at the same moment.
class CorruptState : public Error {
 public:
  using Error::Error;
};

// A rank's copy of something that others may have too.
struct Copy {
  std::int64_t what = 0;
  Rank rank = 0;
  std::int64_t hash = 0;
};

struct WrongCopies {
  std::vector<Rank> wrong;      // most copies of something are not as theirs
  std::vector<Rank> undecided;  // without those, copies still differ, and none is that of most
  bool operator==(const WrongCopies&) const = default;
};
// Pure. Both are sorted.
WrongCopies find_wrong(std::span<const Copy> copies);

// All ranks of the holding's world together: compares what blocks compute with where every rank has that, and
// the state of each share (values in fp32, and what the optimizer remembers) with that of its mirror (null:
// there is none) and of other hosts, unless it is on disk; or, where a share has a journal, with that. Raises
// CorruptState on those that are wrong, and CommError naming them on the others; nothing when there are none.
void require_equal_copies(const Holding& holding, const Weights& weights, const Mirror* mirror,
                          std::int64_t step);

// The same for what ranks have kept of a step, before any of it is given to others: pieces that several have.
// `kept` is this rank's, `all_kept` by rank.
void require_equal_pieces(const KeptState& kept, std::span<const elastic::Kept> all_kept, std::int64_t step,
                          const comm::Communicator& world);

}  // namespace lockstep::train
