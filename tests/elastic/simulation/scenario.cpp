// SPDX-License-Identifier: Apache-2.0
#include "tests/elastic/simulation/scenario.h"

#include <algorithm>

namespace lockstep::elastic::simulation {

using std::chrono::seconds;

Scenario draw_scenario(std::uint64_t seed, Random& random) {
  Scenario scenario;
  scenario.seed = seed;
  scenario.nodes = random.happens(0.1) ? 1 : random.between(2, 6);
  scenario.steps = random.between(20, 150);
  scenario.save_every = random.between(3, 30);
  scenario.keep_last = random.between(1, 3);
  scenario.is_restarted = random.happens(0.85);
  scenario.faults_until = seconds(random.between(4, 20));
  CoordinatorOptions& options = scenario.options;
  options.multiple = scenario.nodes >= 4 && random.happens(0.2) ? 2 : 1;
  options.expected = random.between((scenario.nodes + 1) / 2, scenario.nodes);
  options.max_members = std::max(options.multiple, random.between(options.expected, scenario.nodes));
  options.min_members = random.between(1, std::max(1, options.max_members / 2));
  options.beat_timeout = seconds(2);
  options.stall_timeout = seconds(6);
  options.wait_timeout = seconds(9);
  options.join_timeout = seconds(20);
  options.can_save = true;
  return scenario;
}

}  // namespace lockstep::elastic::simulation
