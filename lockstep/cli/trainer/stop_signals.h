// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::cli {

// While it lives, SIGINT, SIGTERM, SIGHUP and SIGUSR1 (which Slurm sends as a warning before it ends a job)
// are wishes to stop; one that comes seconds later ends the process. Those that were ignored stay ignored. At
// most one at a time.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  static int seen();  // the first one that came; 0: none
};

}  // namespace lockstep::cli
