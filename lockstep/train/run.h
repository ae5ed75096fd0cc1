// SPDX-License-Identifier: Apache-2.0
//
// A whole run: from its description to trained weights.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>

#include "lockstep/comm/communicator.h"
#include "lockstep/elastic/activity.h"
#include "lockstep/model/parameters.h"
#include "lockstep/spec/run_spec.h"
#include "lockstep/train/checkpointer.h"
#include "lockstep/train/kept_state.h"
#include "lockstep/train/resume.h"
#include "lockstep/train/save_history.h"
#include "lockstep/train/step_report.h"
#include "lockstep/train/step_runner.h"
#include "lockstep/train/weights.h"

namespace lockstep::train {

// What a step has left, until the next one begins. All ranks read it together.
struct StepState {
  const model::FlatLayout& layout;  // of the whole model
  const Weights& weights;
  const StepRunner& runner;
};

struct RunSummary {
  std::int64_t steps = 0;       // with those before a checkpoint that it went on from
  std::int64_t bad_steps = 0;   // skipped, because a gradient was not finite
  bool stopped = false;         // before the last step, or its validation
  bool regroups = false;        // likewise, to go on with other ranks
  double loss = 0;              // of the last step
  std::string checkpoint = {};  // of the last step; empty: there is none
  std::string trace = {};       // the file; empty: there is none
};

struct RunHooks {
  // When everything that the run reads has been opened and checked. What it raises ends the run on all ranks.
  std::function<void()> ready = nullptr;
  std::function<void(const StepReport&)> after_step = nullptr;
  // After each after_step.
  std::function<void(const StepState&)> see_state = nullptr;
  // Asked on every rank before the first step, after every step, and while one is validated, which is left
  // then; the run ends at the first step that any rank wants to be the last. One that has no step saves none.
  std::function<bool()> wants_to_stop = nullptr;
  // Where checkpoints are written, and found again by checkpoint.resume; the same on all ranks. Empty:
  // nowhere.
  std::string checkpoints = {};
  std::string tokenizer_digest = {};  // on rank 0
  // Asked on rank 0 when the run goes on from a checkpoint: whether the step of that was never told, or not
  // with the validation loss that it should have. Then it is told again.
  std::function<bool(const Resumed&, bool has_validation)> is_untold = nullptr;
  // Before the first step, when it is not that of a new run.
  std::function<void(const Resumed&)> resumed = nullptr;
  // When a checkpoint is there, or could not be written.
  std::function<void(const SaveReport&)> saved = nullptr;
  // --- Of a run whose ranks may change while it goes on.
  bool goes_on = false;  // other ranks have begun it
  // Asked on every rank when a step can be applied and nothing of it was. Returns when all ranks apply it:
  // true when it is the last with these ranks. CommError when that cannot be known.
  std::function<bool(std::int64_t step)> agree = nullptr;
  // What this process has kept of the run with other ranks, on all ranks or on none; read before the first
  // step.
  const KeptState* kept = nullptr;
  // What this process knows of the checkpoints of the run, on all ranks or on none; goes on with this one's.
  SaveHistory* saves = nullptr;
  // The run ends where it begins: what was kept is saved if it is everything, and nothing trained. On all
  // ranks or on none.
  bool only_saves = false;
  // Before the first step, when what was kept is where the run goes on from.
  std::function<void(const Reached&)> healed = nullptr;
  // When the first step can begin, behind this one.
  std::function<void(std::int64_t step)> begun = nullptr;
  // What this rank tells of what it does, beside its waits in the world; it outlives the run. Null: nobody
  // asks.
  elastic::Activity* activity = nullptr;
  // Requested when the world has lost a rank, and every further call to it raises: what this rank does
  // without others may be given up.
  std::stop_token lost = {};

  // At the end of a run without checkpoints, also of one that was stopped: on every rank or on none, on rank
  // 0 with all parameters in the dtype that blocks compute with. What it raises ends the run on all ranks.
  std::function<void(const model::FlatLayout& whole, const at::Tensor& values)> trained = nullptr;
  // After that, at the end of any run; nobody returns before all have. What it raises ends the run on all
  // ranks.
  std::function<void(const RunSummary&)> finished = nullptr;
};

// Prepares this process for training: one pool of threads for our kernels, libtorch and oneDNN
// (training.threads, or else `asked_threads` of the environment, 0 for none, or else what this host's cores
// leave for each of its ranks), and memory that is kept. UsageError when there are fewer cores than
// training.threads; an environment that asks for more gets all.
void prepare_process(const spec::Training& training, int asked_threads, int local_ranks);

// A run on this rank, together with all ranks of `world`, for as long as these stay. prepare_process() comes
// first.
class Training {
 public:
  // Errors as run_training(). Everything referred to must outlive this.
  Training(const spec::RunSpec& run, const comm::Communicator& world, RunHooks hooks);
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;
  ~Training();

  // Once. Errors as run_training(); after a CommError, and when it `regroups`, what follows can be called.
  RunSummary train();

  // Whether this rank got all that it needs from what the processes of the world had kept. That is a state,
  // also when the first step is not begun.
  bool is_healed() const;
  // The step whose state this is, and one that this rank has agreed to without hearing of the others.
  std::int64_t step() const;
  std::optional<std::int64_t> undecided() const;
  // What has become of that one is known: it counts if it is not later than `decided`.
  void settle(std::int64_t decided);
  // After settle(), once: what this rank holds, and knows of what others held, be they `gone` (sorted) or
  // not; nothing, with a warning, when there is no memory for it. CorruptState when it cannot be trusted.
  KeptState keep(std::span<const Rank> gone);
  // Whether that is right by its journal, and so whatever else of this rank was found to be wrong.
  bool is_vouched_for() const;
  // Whether no other rank has that, but for what it may read of it.
  bool is_alone_with_its_share() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Trains on this rank, together with all ranks of `world`. UsageError for what the run, its data, what it
// goes on from or the folder of checkpoint.initial_load_path cannot be, when ranks have different runs or
// data, when training.max_bad_steps steps in a row had gradients that are not finite, and when checkpoints
// cannot be written (step_boundary.h); ToldElsewhere when another rank raises that. DataError when data are
// corrupt, or no checkpoint to go on from is good. CorruptState as require_equal_copies() (replicas.h).
// Evicted when this rank holds the others up, and they go on without it (elastic.evict_stragglers).
// prepare_process() comes first.
RunSummary run_training(const spec::RunSpec& run, const comm::Communicator& world, const RunHooks& hooks);

}  // namespace lockstep::train
