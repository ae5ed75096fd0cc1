// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lockstep/base/rank.h"
#include "lockstep/elastic/activity.h"
#include "lockstep/train/holding.h"
#include "lockstep/train/mirrored_share.h"
#include "lockstep/train/share_update.h"
#include "lockstep/train/weights.h"

namespace lockstep::train {

// What this rank can say of the shares that others of the sharing group have, so that the share of a lost
// rank is not lost. Between hosts it does the updates of these ranks here as well (CopyMirror), which costs
// their gradients on the wire and an update more; on one host it reads what a rank has left (InPlaceMirror),
// which costs it a journal (update_journal.h).
class Mirror {
 public:
  // Whether a lost rank would take something with it that no other has, and there is another.
  static bool is_needed(const Holding& holding);
  // Whether what is needed can be had in place: the same on all ranks of the sharing group.
  static bool is_in_place(const Holding& holding);

  // Where it is needed. Both must outlive it. Weights have a journal where it is in place.
  static std::unique_ptr<Mirror> make(const Holding& holding, Weights& weights);
  virtual ~Mirror() = default;

  // All ranks of the sharing group together: the state as it is now.
  virtual void fill() = 0;
  // The same, when the gradients of a step are summed: those of every bucket, of the share.
  using Gradients = std::span<const float>;
  virtual void take_gradients(const std::vector<Gradients>& own) = 0;
  // These are going to be applied, by every rank to its own.
  virtual void update(const OptimizerStep& how, float gradient_scale) = 0;

  // Those that are here all the time, to be compared with what their owners have.
  virtual std::span<const MirroredShare> copies() const = 0;
  // At the end, once: shares as they are after the last update, none that are not whole any more. So what a
  // rank of the world held that is `gone` (sorted) is with its mirror or, in place, with two of those that
  // are left, if there are two; and what any other one holds is with one more. A warning names what cannot be
  // read. Each bucket that was read is told to `activity`, if there is one.
  virtual std::vector<MirroredShare> take_shares(std::span<const Rank> gone, elastic::Activity* activity) = 0;
};

}  // namespace lockstep::train
