// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/elastic/coordinator.h"

#include "tests/elastic/simulation/random.h"

namespace lockstep::elastic::simulation {

// What a part of the program does wrong: a test of the test.
enum class Mistake {
  none,
  decides_without_all_votes,
  forgets_generation_numbers,  // when the coordinator is started again
  forgets_decided_step,        // a member, when its place tells it
  keeps_stale_state,           // a member, and offers it as that of the decided step
  takes_old_messages,          // a member, of other members in an old generation
  heals_from_older_steps,      // members: whatever was kept counts
  commits_before_all_have_written,
  believes_failed_commits,
  forgets_syncs,                // the disk of the checkpoints
  resumes_from_old_checkpoint,  // although there is a newer one
  believes_whoever_waits,       // the coordinator, for ever
};

// What a run is, beside the faults that it meets.
struct Scenario {
  std::uint64_t seed = 0;
  Mistake mistake = Mistake::none;
  bool is_traced = false;

  CoordinatorOptions options;
  int nodes = 4;  // those of workers; node 0 is the coordinator's
  std::int64_t steps = 40;
  std::int64_t save_every = 10;
  std::int64_t keep_last = 2;  // checkpoints
  bool is_restarted = true;    // a worker that has ended, by whoever has started it
  Time faults_until{0};
};

Scenario draw_scenario(std::uint64_t seed, Random& random);

}  // namespace lockstep::elastic::simulation
