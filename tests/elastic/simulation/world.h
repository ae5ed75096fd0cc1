// SPDX-License-Identifier: Apache-2.0
//
// What the processes of a simulated run share: time, chance, network, disk, checkpoints, and the eyes that
// watch.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/elastic/simulation/checker.h"
#include "tests/elastic/simulation/disk.h"
#include "tests/elastic/simulation/network.h"
#include "tests/elastic/simulation/scenario.h"

namespace lockstep::elastic::simulation {

class CoordinatorProcess;
class Worker;

// Checkpoints, reduced to what matters here: those that were committed.
class Checkpoints {
 public:
  void put(Generation generation, std::int64_t step, const Cells& cells) {
    parts_[{generation, step}].insert(cells.begin(), cells.end());
  }
  const Cells& commit(Generation generation, std::int64_t step) {
    return committed_[step] = parts_[{generation, step}];
  }
  std::int64_t newest() const { return committed_.empty() ? 0 : committed_.rbegin()->first; }
  // That of step 0, which is not committed, is made from nothing.
  Cells load(std::int64_t step) const;

 private:
  std::map<std::pair<Generation, std::int64_t>, Cells> parts_;
  std::map<std::int64_t, Cells> committed_;
};

class World {
 public:
  explicit World(Scenario drawn, Random& chance);
  ~World();

  // What a process asks of whoever has started it.
  CoordinatorProcess* coordinator();               // null: there is none at the moment
  Worker* worker(MemberId member);                 // null: it has ended
  void end_coordinator();                          // and starts another one later
  void end_worker(Worker& worker, bool silently);  // and starts another one later, unless it has left
  void end_run(const End& end);

  void start_coordinator();
  void start_worker(int node);
  std::vector<Worker*> workers();  // that live
  bool has_ended() const { return has_ended_; }
  const End& end() const { return end_; }

  // One line, when the run is traced.
  template <typename... Arguments>
  void trace(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    if (scenario.is_traced) print(fmt::format(format, std::forward<Arguments>(arguments)...));
  }

  Scenario scenario;
  Random& random;
  Events events;
  Network network;
  MemoryDisk disk;
  Checkpoints checkpoints;
  Checker checker;

 private:
  void print(const std::string& line) const;

  std::vector<std::unique_ptr<CoordinatorProcess>> coordinators_;  // the last one is the present one
  std::vector<std::unique_ptr<Worker>> workers_;
  bool has_ended_ = false;
  End end_;
};

}  // namespace lockstep::elastic::simulation
