// SPDX-License-Identifier: Apache-2.0
//
// From checkpoints into the weights of a run.
#pragma once

#include <optional>
#include <string>

#include "lockstep/checkpoint/store/reader.h"
#include "lockstep/spec/run_spec.h"
#include "lockstep/train/weights.h"

namespace lockstep::train {

// The newest checkpoint of a run that checkpoint.resume lets go on: of the store `folder` for "auto", or what
// a path names. None when there is none, or the key is empty. UsageError when a path names none.
std::optional<std::string> newest_checkpoint(const spec::Checkpoint& checkpoint, const std::string& folder);

// The run with what it leaves to the number of its workers (checkpoint/store/continuation.h) as the newest
// checkpoint has it that tells; as it is when there is none.
spec::RunSpec as_saved(const spec::RunSpec& run, const std::string& folder);

// checkpoint.resume of a run that was begun, all ranks of `world` together: "auto" once there is a checkpoint
// in its store `folder`, and until then what it was begun with. What was there before it began counts as its
// own.
std::string resume_later(const spec::Checkpoint& checkpoint, const std::string& folder,
                         const comm::Communicator& world);

struct Resumed {
  std::string path;
  checkpoint::Progress progress;
  std::optional<checkpoint::LastStep> last_step = std::nullopt;
  std::string arithmetic = {};  // with which it was computed, as in its manifest
  bool is_told_again = false;   // its last step
};

// What a checkpoint must be for the run to go on with it.
struct Expected {
  const spec::RunSpec& run;
  std::string data_digest;
  std::string tokenizer_digest;  // on rank 0
  std::uint64_t samples_per_step = 0;
};

// Before anything is done for a run that is to go on from a path, all ranks together: errors as resume(),
// except that the values are not looked at. Of a run's own checkpoints ("auto") resume() may choose another.
void require_continuation(const Expected& expected, const comm::Communicator& world);

// Gives values and moments what a checkpoint has. All ranks of the holding's world call it together. For
// "auto" one that turns out to be bad is passed over with a warning, and the next older one is taken. None
// when there is nothing to resume. UsageError when the run is another one (checkpoint/store/continuation.h),
// or when ranks find different ones at a path; DataError when none is good.
std::optional<Resumed> resume(const std::string& folder, const Expected& expected, const Holding& holding,
                              Weights& weights);

// Only the values. UsageError when the checkpoint is of another model, DataError when it is bad.
void load_values(checkpoint::Checkpoint& from, const Holding& holding, Weights& weights);

}  // namespace lockstep::train
