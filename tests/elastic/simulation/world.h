// SPDX-License-Identifier: Apache-2.0
//
// What the processes of a simulated run share: time, chance, network, disks, and the eyes that watch.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/elastic/simulation/checker.h"
#include "tests/elastic/simulation/disk.h"
#include "tests/elastic/simulation/network.h"
#include "tests/elastic/simulation/scenario.h"
#include "tests/support/files.h"

namespace lockstep::elastic::simulation {

class CoordinatorProcess;
class Worker;

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
  // The folder of the checkpoints, which all workers see.
  std::string store_folder() const { return folder_.path("shared/checkpoints"); }
  // A worker has reported a checkpoint as committed.
  void see_commit(std::int64_t step);
  // After every work on the shared disk. When it went down meanwhile, decides what is left of it and of who
  // was at work.
  void settle_shared_disk(Worker& worker);
  // What a worker reads of the checkpoint of a step; none when it is not there or not good.
  std::optional<Cells> read_checkpoint(std::int64_t step, const std::vector<Range>& pieces) const;
  // The newest checkpoint that is promised can be read; 0: there is none.
  std::int64_t see_newest_checkpoint();

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
  Tally tally;

 private:
  test::TemporaryFolder folder_;

 public:
  Network network;
  SimulatedDisk disk;         // of the coordinator
  SimulatedDisk shared_disk;  // of the checkpoints
  const std::string log_path;
  Checker checker;

 private:
  void print(const std::string& line) const;
  void see_promised(std::int64_t step) const;

  std::vector<std::unique_ptr<CoordinatorProcess>> coordinators_;  // the last one is the present one
  std::vector<std::unique_ptr<Worker>> workers_;
  bool has_ended_ = false;
  End end_;
};

}  // namespace lockstep::elastic::simulation
