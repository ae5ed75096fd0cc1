// SPDX-License-Identifier: Apache-2.0
//
// A run of coordinator and workers in virtual time, on one thread, with everything that goes wrong drawn from
// a seed: the same seed gives the same run. docs/faults.md says what in it is the real program.
#pragma once

#include <cstdint>
#include <string>

#include "tests/elastic/simulation/scenario.h"
#include "tests/elastic/simulation/tally.h"

namespace lockstep::elastic::simulation {

struct Outcome {
  std::string violation;      // empty: everything held
  bool is_finished = false;   // the last step is in a checkpoint; otherwise there were too few workers
  bool is_restarted = false;  // lost workers were replaced, so that there should not be too few for long
  std::int64_t steps = 0;
  Tally faults;
  int rollbacks = 0;
  int last_savings = 0;
  std::int64_t repeated_steps = 0;
  std::uint64_t events = 0;
};

Outcome simulate(std::uint64_t seed, Mistake mistake = Mistake::none, bool is_traced = false);

}  // namespace lockstep::elastic::simulation
