// SPDX-License-Identifier: Apache-2.0
//
// What a run reads.
#pragma once

#include <optional>

#include "lockstep/comm/communicator.h"
#include "lockstep/plan/pipeline.h"
#include "lockstep/spec/run_spec.h"
#include "lockstep/train/feed.h"
#include "lockstep/train/first_values.h"

namespace lockstep::train {

// What a run reads from files that may be wrong on one host only.
struct Sources {
  plan::PipelinePlan pipeline;
  std::optional<Feed> feed;
  std::optional<Feed> validation;           // none: the run does not validate
  std::optional<FirstValues> first_values;  // none: not opened
};

// Opens and checks everything, on all ranks of the world together; errors as run_training(). First values
// only for a run that `is_new`: one that goes on may do without them, and they may be gone.
Sources open_sources(const spec::RunSpec& run, const comm::Communicator& world, bool is_new);

}  // namespace lockstep::train
