// SPDX-License-Identifier: Apache-2.0
#include "tests/elastic/simulation/world.h"

#include <algorithm>
#include <cstdio>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/store/store.h"

#include "tests/elastic/simulation/checkpoints.h"
#include "tests/elastic/simulation/coordinator_process.h"
#include "tests/elastic/simulation/worker.h"

namespace lockstep::elastic::simulation {

World::World(Scenario drawn, Random& chance)
    : scenario(std::move(drawn)),
      random(chance),
      network(events, random, tally),
      disk(folder_.path("coordinator"), random, tally),
      shared_disk(folder_.path("shared"), random, tally),
      log_path(folder_.path("coordinator/log")),
      checker(scenario.steps) {
  if (scenario.mistake == Mistake::forgets_syncs) shared_disk.forget_file_syncs();
}

World::~World() = default;

CoordinatorProcess* World::coordinator() {
  if (coordinators_.empty() || !coordinators_.back()->is_alive()) return nullptr;
  return coordinators_.back().get();
}

void World::start_coordinator() {
  if (coordinator() != nullptr || has_ended_) return;
  trace("the coordinator starts");
  const int incarnation = static_cast<int>(coordinators_.size());
  coordinators_.push_back(std::make_unique<CoordinatorProcess>(*this, incarnation));
  coordinators_.back()->start();
}

void World::end_coordinator() {
  CoordinatorProcess* const present = coordinator();
  if (present == nullptr) return;
  trace("the coordinator ends");
  if (random.happens(0.7)) network.close_all(*present);
  present->end(false);
  disk.crash();
  events.after(random.milliseconds(10, 3000), [this] { start_coordinator(); });
}

Worker* World::worker(MemberId member) {
  for (const auto& worker : workers_) {
    if (worker->id() == member && worker->is_alive()) return worker.get();
  }
  return nullptr;
}

std::vector<Worker*> World::workers() {
  std::vector<Worker*> living;
  for (const auto& worker : workers_) {
    if (worker->is_alive()) living.push_back(worker.get());
  }
  return living;
}

void World::start_worker(int node) {
  const auto is_there = [&](const Worker* worker) { return worker->node() == node; };
  if (has_ended_ || std::ranges::any_of(workers(), is_there)) return;
  workers_.push_back(std::make_unique<Worker>(*this, node, random.number()));
  trace("member {:x} starts on node {}", workers_.back()->id(), node);
  workers_.back()->start();
}

void World::end_worker(Worker& worker, bool silently) {
  if (!worker.is_alive()) return;
  trace("member {:x} of node {} ends{}", worker.id(), worker.node(), silently ? " silently" : "");
  if (!silently) network.close_all(worker);
  worker.end(silently);
  if (worker.has_left() || !scenario.is_restarted) return;
  events.after(random.milliseconds(100, 3000), [this, node = worker.node()] { start_worker(node); });
}

void World::see_promised(std::int64_t step) const {
  for (const checkpoint::Listed& listed : checkpoint::CheckpointStore(store_folder()).committed()) {
    if (listed.step != step) continue;
    try {
      return checker.see_checkpoint(step, read_verified(listed.path));
    } catch (const Error& error) {
      throw Violation(
          fmt::format("the checkpoint of step {} was reported, and is bad: {}", step, error.what()));
    }
  }
  throw Violation(fmt::format("the checkpoint of step {} was reported, and is not there", step));
}

std::optional<Cells> World::read_checkpoint(std::int64_t step, const std::vector<Range>& pieces) const {
  const std::vector<checkpoint::Listed> found = checkpoint::CheckpointStore(store_folder()).committed();
  const auto mine = std::ranges::find(found, step, &checkpoint::Listed::step);
  if (mine == found.end()) return std::nullopt;
  try {
    return read_cells(mine->path, pieces);
  } catch (const DataError& error) {
    trace("passed over a checkpoint that is not good: {}", error.what());
    return std::nullopt;
  }
}

void World::see_commit(std::int64_t step) {
  trace("the checkpoint of step {} is committed", step);
  see_promised(step);
  checker.see_promise(step);
}

std::int64_t World::see_newest_checkpoint() {
  if (checker.promised().empty()) return 0;
  const std::int64_t newest = *checker.promised().rbegin();
  see_promised(newest);
  return newest;
}

void World::settle_shared_disk(Worker& worker) {
  const bool went_down = shared_disk.is_down();
  if (went_down) {
    trace("the disk of the checkpoints goes down while member {:x} works on it", worker.id());
    const int what = random.between(0, 2);
    if (what == 0) {
      tally.add(Fault::torn_work);
      shared_disk.revive();
    } else {
      shared_disk.crash();
    }
    if (what != 2) end_worker(worker, what == 1);
  }
  std::set<std::int64_t> committed;
  for (const auto& listed : checkpoint::CheckpointStore(store_folder()).committed()) {
    committed.insert(listed.step);
  }
  checker.see_store(committed);
  if (went_down) see_newest_checkpoint();
}

void World::end_run(const End& end) {
  trace("the run ends: {}", end.reason);
  has_ended_ = true;
  end_ = end;
}

void World::print(const std::string& line) const {
  std::printf("%10.4f  %s\n", std::chrono::duration<double>(events.now()).count(), line.c_str());
}

}  // namespace lockstep::elastic::simulation
