// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "lockstep/comm/communicator.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::cli {

// This process as one rank of the run: takes its place from the environment, finds the others, makes itself
// ready to train, and gives what the body gives. When all ranks fail for one reason, one of them raises it,
// and the others return the code that it ends with.
int run_as_rank(const spec::RunSpec& run, const std::function<int(const comm::Communicator& world)>& body);

// This process alone, to compute with a model: of what launchers leave in the environment only the number of
// threads counts. UsageError when that is none.
void prepare_alone();

}  // namespace lockstep::cli
