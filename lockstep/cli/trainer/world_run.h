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
  struct Options {
    double gemm_peak = 0;     // of all ranks together
    bool goes_on = false;     // another world has begun the run, and this one goes on with it
    bool is_elastic = false;  // another world may go on with it
  };
  // All ranks together. Errors as RunFolder, on all ranks. The run must outlive this.
  WorldRun(const spec::RunSpec& run, const comm::Communicator& world, const Options& options);

  // Refer to this.
  train::RunHooks hooks();

  // Why standard output takes no more of what the run says: then the run is to stop, as after a signal.
  std::optional<std::string> lost_output() const;

 private:
  const spec::RunSpec& run_;
  comm::Communicator world_;
  Options options_;
  std::optional<RunFolder> folder_;  // on rank 0
};

// Of a run that has ended, finished or stopped.
int exit_code_of(const spec::RunSpec& run, const train::RunSummary& summary);

}  // namespace lockstep::cli
