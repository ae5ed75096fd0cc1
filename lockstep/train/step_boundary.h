// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/train/checkpointer.h"
#include "lockstep/train/resume.h"
#include "lockstep/train/save_history.h"

namespace lockstep::train {

// What ranks agree on between two steps, in one small message: whether somebody wants to stop, whether a
// checkpoint is due, and how far the one under way has come. A step whose telling takes a while, because it
// is validated first, can be saved meanwhile; a checkpoint is told of after it all the same, a failure at
// once: the world may break before that.
class StepBoundary {
 public:
  struct Options {
    spec::Checkpoint checkpoint;
    std::function<bool()> wants_to_stop = nullptr;
    std::function<void()> before_save = nullptr;  // on all ranks together; what it raises goes on
    std::function<void(const SaveReport&)> saved = nullptr;
    std::optional<Resumed> resumed = std::nullopt;  // what the run goes on from
  };
  // `checkpointer` may be null: nothing is saved. `history` is the same on all ranks, but for times, and goes
  // on. What is referred to must outlive this.
  StepBoundary(const comm::Communicator& world, Checkpointer* checkpointer, SaveHistory& history,
               Options options);

  // All ranks, after every step that was told. True: somebody wants this to be the last. UsageError on all
  // when as many checkpoints in a row as checkpoint.max_failures could not be written.
  bool pass(const Reached& reached);

  // All ranks, before a step is told that is not soon: begins the checkpoint that is due, at the last step of
  // the run that of the end, of which this rank's part is written when this returns. True as pass().
  bool begin_untold(const Reached& reached, bool is_last);
  // All ranks, now and then until that step is told: the checkpoint under way goes on. True as pass().
  bool look();

  // How long this rank has copied its state for checkpoints, since the last call.
  double take_copy_seconds() { return std::exchange(copy_seconds_, 0.0); }

  // Returns when nothing is being saved any more, and no old checkpoint removed.
  void drain();

  // At the end of the run, finished or stopped: returns when its last step is saved, with the path of that
  // (empty when nothing is). UsageError when it cannot be.
  std::string finish(const Reached& reached);

 private:
  struct Heard {
    bool stop = false;
    bool save = false;
    bool removes = false;  // the leader, old checkpoints
  };
  bool wants_to_stop() const { return options_.wants_to_stop && options_.wants_to_stop(); }
  // One exchange. `save` is what this rank thinks.
  Heard exchange(bool stop, bool save);
  // The one after a step: whether it is to be the last, and a checkpoint of it is to begin.
  Heard ask(const Reached& reached);
  bool is_saved(const Reached& reached) const;
  void begin(const Reached& reached, bool training_waits);
  void await_idle();
  void take(SaveReport report);
  void tell(const SaveReport& report) const;
  void tell_saved();

  const comm::Communicator& world_;
  Checkpointer* checkpointer_;
  SaveHistory& history_;
  Options options_;
  Clock::time_point last_began_;  // in this world, or of the history
  std::int64_t last_step_;        // the same of its step
  double copy_seconds_ = 0;
  bool stops_ = false;             // somebody has wanted that
  SaveReport last_;                // that has ended
  std::vector<SaveReport> heard_;  // and were not told of, or failed
  std::optional<Resumed> newest_;
};

}  // namespace lockstep::train
