// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/spec/run_spec.h"

namespace lockstep::cli {

struct TrainBenchOptions {
  spec::RunSpec run;  // checked and filled; has no corpus
  int workers = 2;
  int turns = 3;
  std::vector<std::string> against;
  bool json = false;
};

// What follows "lockstep bench train". None when help was asked for: `help` is what to print then. UsageError
// for everything that can be seen to be wrong before anything is started.
std::optional<TrainBenchOptions> parse_train_bench_options(const std::vector<std::string>& arguments,
                                                           std::string& help);

}  // namespace lockstep::cli
