// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/dtype.h"
#include "lockstep/cli/bench/protocol.h"
#include "lockstep/cli/bench/site.h"
#include "lockstep/schedule/collective/collective.h"

namespace lockstep::cli {

struct BenchOptions {
  Site site;
  std::vector<schedule::Op> ops;
  std::vector<std::string> algorithms;  // as Case has them; empty: all that can do the operation
  std::vector<int> lanes;               // that each rank owns, for sums of lanes; empty: none were asked for
  std::vector<std::size_t> bytes;
  DType dtype = DType::fp32;
  std::vector<bool> registered;  // each one is measured
  Exactness exactness = Exactness::automatic;
  int turns = 7;
  double turn_ms = 75;
  std::vector<std::string> against;  // gloo, mpi, memcpy, sockets
  bool json = false;
  bool tune = false;
};

// What follows "lockstep bench collectives". None when help was asked for: `help` is what to print then.
// UsageError, one sentence, for everything that can be seen to be wrong before anything is started.
std::optional<BenchOptions> parse_bench_options(const std::vector<std::string>& arguments, std::string& help);

// The algorithms to measure for an operation: those given, or all that support it (and are exact if that is
// asked for; and have hosts to compose over).
std::vector<std::string> algorithms_for(const BenchOptions& options, schedule::Op op);

// The sizes to measure for an operation: those given, rounded down to whole elements, for all_to_all to as
// many for each rank, but to at least one of them, and neighbours that are the same then once; a barrier has
// none but 0.
std::vector<std::size_t> sizes_for(const BenchOptions& options, schedule::Op op);

}  // namespace lockstep::cli
