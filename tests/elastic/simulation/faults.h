// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/elastic/simulation/world.h"

namespace lockstep::elastic::simulation {

// What goes wrong, drawn at random: one fault after the other until the scenario says that it is enough. Then
// everything that still is wrong is repaired, except that who has been lost for good stays lost.
class Faults {
 public:
  explicit Faults(World& world) : world_(world) {}

  void start();

 private:
  void next();
  void repair();
  void inject();

  void end_worker();
  void pause_worker();
  void hang_worker();
  void slow_worker();
  void add_worker();
  void cut(bool one_way, Time time);
  void cut_off_node();
  void end_coordinator();
  void pause_coordinator();
  void fill_disk();
  void slow_disk();
  void break_disk();
  void damage_log();
  void damage_checkpoint();

  Worker* any_worker();
  SimulatedDisk& any_disk() { return world_.random.happens(0.5) ? world_.disk : world_.shared_disk; }
  int any_node() { return world_.random.between(0, world_.scenario.nodes); }

  World& world_;
  bool is_over_ = false;
  Time pause_{0};
};

}  // namespace lockstep::elastic::simulation
