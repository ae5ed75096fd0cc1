// SPDX-License-Identifier: Apache-2.0
#include "tests/elastic/simulation/world.h"

#include <algorithm>
#include <cstdio>

#include "tests/elastic/simulation/coordinator_process.h"
#include "tests/elastic/simulation/worker.h"

namespace lockstep::elastic::simulation {

Cells Checkpoints::load(std::int64_t step) const {
  if (step > 0) return committed_.at(step);
  Cells cells;
  for (int cell = 0; cell < kCells; ++cell) cells[cell] = first_value(cell);
  return cells;
}

World::World(Scenario drawn, Random& chance)
    : scenario(std::move(drawn)),
      random(chance),
      network(events, random),
      disk(random),
      checker(scenario.steps) {}

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

void World::end_run(const End& end) {
  trace("the run ends: {}", end.reason);
  has_ended_ = true;
  end_ = end;
}

void World::print(const std::string& line) const {
  std::printf("%10.4f  %s\n", std::chrono::duration<double>(events.now()).count(), line.c_str());
}

}  // namespace lockstep::elastic::simulation
