// SPDX-License-Identifier: Apache-2.0
#include "tests/elastic/simulation/simulation.h"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

#include <gtest/gtest.h>

#include "lockstep/base/log.h"

namespace lockstep::elastic::simulation {
namespace {

std::uint64_t number_in_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

// The disks of a simulation fail all the time, which the store tells; and their files are of no use to
// anybody later.
const bool kIsPrepared = [] {
  log::set_level(log::Level::error);
  if (std::filesystem::is_directory("/dev/shm")) ::setenv("TMPDIR", "/dev/shm", 0);
  return true;
}();

struct Sum {
  std::uint64_t finished = 0, ended_early = 0;
  std::int64_t steps = 0, rollbacks = 0, last_savings = 0, repeated = 0;
  Tally faults;

  void add(const Outcome& outcome) {
    finished += outcome.is_finished ? 1 : 0;
    ended_early += outcome.is_restarted && !outcome.is_finished ? 1 : 0;
    steps += outcome.steps;
    rollbacks += outcome.rollbacks;
    last_savings += outcome.last_savings;
    repeated += outcome.repeated_steps;
    faults += outcome.faults;
  }
};

std::string to_text(const Tally& faults) {
  std::string text;
  for (std::size_t i = 0; i < kFaultNames.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(faults.counts()[i]) + " " + kFaultNames[i];
  }
  return text;
}

// A seed of LOCKSTEP_SIMULATION_SEED alone, with all that happens; or else so many as
// LOCKSTEP_SIMULATION_SEEDS says.
TEST(Simulation, EverythingHoldsWhateverGoesWrong) {
  if (const std::uint64_t seed = number_in_environment("LOCKSTEP_SIMULATION_SEED", 0)) {
    EXPECT_EQ(simulate(seed, Mistake::none, true).violation, "");
    return;
  }
  const std::uint64_t seeds = number_in_environment("LOCKSTEP_SIMULATION_SEEDS", 2000);
  Sum sum;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Outcome outcome = simulate(seed);
    ASSERT_EQ(outcome.violation, "") << "seed " << seed << "; `./dev simulate --seed " << seed
                                     << "` shows the run";
    sum.add(outcome);
  }
  std::cout << seeds << " runs: " << sum.finished << " reached their last step, " << sum.ended_early
            << " ended although lost workers were replaced, " << sum.rollbacks << " rollbacks, "
            << sum.last_savings << " generations of too few members that only saved, " << sum.repeated
            << " of " << sum.steps << " steps repeated; " << to_text(sum.faults) << "\n";
  EXPECT_GT(sum.finished, seeds / 2) << "too many runs end early to show anything";
  EXPECT_LE(sum.ended_early, seeds / 100) << "runs whose lost workers are replaced go on";
  if (seeds < 500) return;
  EXPECT_GT(sum.last_savings, 0) << "members were never too few for too long";
  for (std::size_t i = 0; i < kFaultNames.size(); ++i) {
    EXPECT_GT(sum.faults.counts()[i], 0) << "no " << kFaultNames[i];
  }
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
    // Damage to bytes that never reached the disk is refused by the disk: that is not how it is to be found.
    if (violation.empty() || violation.find("crash_disk.cpp") != std::string::npos) continue;
    std::cout << "seed " << seed << ": " << violation << "\n";
    return;
  }
  FAIL() << "500 runs with this mistake were taken for good ones";
}

INSTANTIATE_TEST_SUITE_P(
    Simulation, Mistakes,
    ::testing::Values(Mistake::decides_without_all_votes, Mistake::forgets_generation_numbers,
                      Mistake::forgets_decided_step, Mistake::keeps_stale_state, Mistake::takes_old_messages,
                      Mistake::heals_from_older_steps, Mistake::commits_before_all_have_written,
                      Mistake::believes_failed_commits, Mistake::forgets_syncs,
                      Mistake::resumes_from_old_checkpoint, Mistake::believes_whoever_waits));

}  // namespace
}  // namespace lockstep::elastic::simulation
