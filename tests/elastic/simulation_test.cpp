// SPDX-License-Identifier: Apache-2.0
#include "tests/elastic/simulation/simulation.h"

#include <cstdlib>
#include <iostream>
#include <string>

#include <gtest/gtest.h>

namespace lockstep::elastic::simulation {
namespace {

std::uint64_t number_in_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

// A seed of LOCKSTEP_SIMULATION_SEED alone, with all that happens; or else so many as
// LOCKSTEP_SIMULATION_SEEDS says.
TEST(Simulation, EverythingHoldsWhateverGoesWrong) {
  if (const std::uint64_t seed = number_in_environment("LOCKSTEP_SIMULATION_SEED", 0)) {
    EXPECT_EQ(simulate(seed, Mistake::none, true).violation, "");
    return;
  }
  const std::uint64_t seeds = number_in_environment("LOCKSTEP_SIMULATION_SEEDS", 2000);
  std::uint64_t finished = 0, ended_early = 0;
  std::int64_t steps = 0, faults = 0, rollbacks = 0, repeated = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Outcome outcome = simulate(seed);
    ASSERT_EQ(outcome.violation, "") << "seed " << seed << "; LOCKSTEP_SIMULATION_SEED=" << seed
                                     << " shows the run";
    finished += outcome.is_finished ? 1 : 0;
    ended_early += outcome.is_restarted && !outcome.is_finished ? 1 : 0;
    steps += outcome.steps;
    faults += outcome.faults;
    rollbacks += outcome.rollbacks;
    repeated += outcome.repeated_steps;
  }
  std::cout << seeds << " runs with " << faults << " faults: " << finished << " reached their last step, "
            << ended_early << " ended although lost workers were replaced, " << rollbacks << " rollbacks, "
            << repeated << " of " << steps << " steps repeated\n";
  EXPECT_GT(finished, seeds / 2) << "too many runs end early to show anything";
  EXPECT_LE(ended_early, seeds / 100) << "runs whose lost workers are replaced go on";
  EXPECT_GT(faults, static_cast<std::int64_t>(seeds));
}

TEST(Simulation, TheSameSeedGivesTheSameRun) {
  for (const std::uint64_t seed : {7, 8}) {
    const Outcome first = simulate(seed);
    const Outcome second = simulate(seed);
    EXPECT_EQ(first.events, second.events);
    EXPECT_EQ(first.repeated_steps, second.repeated_steps);
  }
  EXPECT_NE(simulate(7).events, simulate(8).events);
}

class Mistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreFound) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    const std::string violation = simulate(seed, GetParam()).violation;
    if (violation.empty()) continue;
    std::cout << "seed " << seed << ": " << violation << "\n";
    return;
  }
  FAIL() << "500 runs with this mistake were taken for good ones";
}

INSTANTIATE_TEST_SUITE_P(Simulation, Mistakes,
                         ::testing::Values(Mistake::decides_without_all_votes,
                                           Mistake::forgets_generation_numbers, Mistake::forgets_decided_step,
                                           Mistake::keeps_stale_state, Mistake::takes_old_messages));

}  // namespace
}  // namespace lockstep::elastic::simulation
