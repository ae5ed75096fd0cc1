// SPDX-License-Identifier: Apache-2.0
//
// Whether a run goes on where a checkpoint ends.
#pragma once

#include <string>

#include "lockstep/checkpoint/store/manifest.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::checkpoint {

// The run that was saved, with keys that have no effect as older versions let them be. DataError naming
// `path` when the checkpoint's configuration cannot be read.
spec::RunSpec saved_run(const Manifest& manifest, const std::string& path);

// The run with what it leaves to the number of its workers (lanes, tensor lanes, the global batch) as the
// checkpoint has it. DataError as saved_run().
spec::RunSpec continued(spec::RunSpec run, const Manifest& manifest, const std::string& path);

// UsageError naming the first key that would make it another run: one that changes the numbers. Keys that say
// where and how it is computed, written and shown may differ, and so may training.steps, which the learning
// rate of a decaying schedule follows.
void require_same_training(const spec::RunSpec& run, const Manifest& manifest, const std::string& path);

}  // namespace lockstep::checkpoint
