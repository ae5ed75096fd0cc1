// SPDX-License-Identifier: Apache-2.0
#include "tests/elastic/simulation/simulation.h"

#include <exception>

#include "tests/elastic/simulation/coordinator_process.h"
#include "tests/elastic/simulation/faults.h"
#include "tests/elastic/simulation/worker.h"
#include "tests/elastic/simulation/world.h"

namespace lockstep::elastic::simulation {
namespace {

// Every timeout that can follow the last fault, several times over, and a second for each step.
Time bound_of(const Scenario& scenario) {
  const CoordinatorOptions& options = scenario.options;
  return scenario.faults_until + 3 * (options.beat_timeout + options.stall_timeout + options.join_timeout) +
         std::chrono::seconds(scenario.steps);
}

void run(World& world, Outcome& outcome) {
  const Time bound = bound_of(world.scenario);
  while (!world.has_ended()) {
    if (!world.events.next() || world.events.now() > bound) {
      throw Violation("the run neither goes on nor ends, although nothing goes wrong any more");
    }
    ++outcome.events;
  }
  outcome.is_finished = world.see_newest_checkpoint() == world.scenario.steps;
}

}  // namespace

Outcome simulate(std::uint64_t seed, Mistake mistake, bool is_traced) {
  Random random(seed);
  Scenario scenario = draw_scenario(seed, random);
  scenario.mistake = mistake;
  scenario.is_traced = is_traced;
  if (mistake == Mistake::believes_whoever_waits) scenario.options.wait_timeout = std::chrono::hours(24);
  World world(scenario, random);
  Faults faults(world);
  Outcome outcome;
  world.start_coordinator();
  for (int node = 1; node <= scenario.options.expected; ++node) {
    world.events.after(random.milliseconds(0, 2000), [&world, node] { world.start_worker(node); });
  }
  faults.start();
  try {
    run(world, outcome);
  } catch (const std::exception& error) {
    outcome.violation = error.what();
  }
  outcome.steps = scenario.steps;
  outcome.is_restarted = scenario.is_restarted;
  outcome.faults = world.tally;
  outcome.rollbacks = world.checker.rollbacks();
  outcome.last_savings = world.checker.last_savings();
  outcome.repeated_steps = world.checker.repeated_steps();
  return outcome;
}

}  // namespace lockstep::elastic::simulation
