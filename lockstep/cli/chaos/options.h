// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/cli/chaos/plan.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::cli {

struct ChaosOptions {
  spec::RunSpec run;  // checked; what follows from the number of workers is filled in
  PlanOptions faults;
  std::string output;                    // the folder for everything that is written
  std::optional<std::string> reference;  // the folder of an undisturbed run that was made before
  bool against_torchrun = false;
  bool json = false;
};

// What follows "lockstep chaos". None when help was asked for: `help` is what to print then. UsageError for
// everything that can be seen to be wrong before anything is started.
std::optional<ChaosOptions> parse_chaos_options(const std::vector<std::string>& arguments, std::string& help);

// Whether a worker comes and goes by a process of its own.
bool has_resizes(const PlanOptions& faults);

}  // namespace lockstep::cli
