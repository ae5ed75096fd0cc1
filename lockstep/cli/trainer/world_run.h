// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "lockstep/cli/trainer/run_folder.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/spec/run_spec.h"
#include "lockstep/train/run.h"

namespace lockstep::cli {

// What `lockstep train` does around the training of one world: the folder of the run, on rank 0, and signals.
class WorldRun {
 public:
  // All ranks together. `goes_on`: another world has begun the run, and this one goes on with it. `gemm_peak`
  // is that of all ranks together. Errors as RunFolder, on all ranks. The run must outlive this.
  WorldRun(const spec::RunSpec& run, const comm::Communicator& world, double gemm_peak, bool goes_on);

  // Refer to this.
  train::RunHooks hooks();

 private:
  const spec::RunSpec& run_;
  comm::Communicator world_;
  double gemm_peak_;
  std::optional<RunFolder> folder_;  // on rank 0
};

// Of a run that has ended, finished or stopped.
int exit_code_of(const spec::RunSpec& run, const train::RunSummary& summary);

}  // namespace lockstep::cli
