// SPDX-License-Identifier: Apache-2.0
#include "tests/elastic/simulation/faults.h"

#include "tests/elastic/simulation/coordinator_process.h"
#include "tests/elastic/simulation/worker.h"

namespace lockstep::elastic::simulation {
namespace {

// Less than the shortest record has, so that only the last one is damaged.
constexpr int kTailBytes = 40;

}  // namespace

void Faults::start() {
  Random& random = world_.random;
  pause_ = random.milliseconds(300, 4000);
  world_.network.set_faults({.drop = random.happens(0.5) ? 0.002 : 0,
                             .duplicate = random.happens(0.5) ? 0.02 : 0,
                             .most_delay_ms = random.between(1, 40)});
  next();
  world_.events.at(world_.scenario.faults_until, [this] { repair(); });
}

void Faults::next() {
  world_.events.after(world_.random.between(1, 200) * pause_ / 100, [this] {
    if (is_over_) return;
    inject();
    ++injected_;
    next();
  });
}

void Faults::inject() {
  Random& random = world_.random;
  switch (random.between(0, 13)) {
    case 0:
    case 1:
      return end_worker();
    case 2:
      return pause_worker();
    case 3:
      return hang_worker();
    case 4:
      return slow_worker();
    case 5:
      return add_worker();
    case 6:
      return cut(random.happens(0.5), random.milliseconds(50, 500));
    case 7:
      return cut(random.happens(0.5), random.milliseconds(500, 8000));
    case 8:
      return cut_off_node();
    case 9:
      return end_coordinator();
    case 10:
      return pause_coordinator();
    case 11:
      return fill_disk();
    case 12:
      return slow_disk();
    default:
      return lose_power();
  }
}

void Faults::repair() {
  world_.trace("faults are over");
  is_over_ = true;
  world_.network.set_faults({});
  world_.network.unblock_all();
  world_.disk.set_full(false);
  for (Worker* worker : world_.workers()) {
    worker->slow_down(1);
    worker->go_on();
  }
  if (CoordinatorProcess* coordinator = world_.coordinator()) {
    coordinator->set_disk_delay(std::chrono::milliseconds(2));
    coordinator->go_on();
  }
}

Worker* Faults::any_worker() {
  const std::vector<Worker*> workers = world_.workers();
  return workers.empty() ? nullptr : workers[world_.random.number() % workers.size()];
}

void Faults::end_worker() {
  Worker* const worker = any_worker();
  if (worker != nullptr) world_.end_worker(*worker, world_.random.happens(0.3));
}

void Faults::pause_worker() {
  Worker* const worker = any_worker();
  if (worker == nullptr) return;
  world_.trace("member {:x} is paused", worker->id());
  worker->pause();
  world_.events.after(world_.random.milliseconds(50, 6000), [worker] { worker->go_on(); });
}

void Faults::hang_worker() {
  Worker* const worker = any_worker();
  if (worker == nullptr || !world_.random.happens(0.5)) return;
  world_.trace("member {:x} hangs", worker->id());
  worker->hang();
}

void Faults::slow_worker() {
  Worker* const worker = any_worker();
  if (worker == nullptr) return;
  world_.trace("member {:x} is slow", worker->id());
  worker->slow_down(world_.random.between(2, 30));
  world_.events.after(world_.random.milliseconds(500, 5000), [worker] { worker->slow_down(1); });
}

void Faults::add_worker() {
  world_.start_worker(world_.random.between(1, world_.scenario.nodes));
}

void Faults::cut(bool one_way, Time time) {
  const int from = any_node();
  const int to = any_node();
  if (from == to) return;
  world_.trace("the link from node {} to node {} is cut{}", from, to, one_way ? "" : ", and back");
  world_.network.block(from, to);
  if (!one_way) world_.network.block(to, from);
  world_.events.after(time, [this, from, to] {
    world_.network.unblock(from, to);
    world_.network.unblock(to, from);
  });
}

void Faults::cut_off_node() {
  const int node = any_node();
  world_.trace("node {} is cut off", node);
  for (int other = 0; other <= world_.scenario.nodes; ++other) {
    if (other == node) continue;
    world_.network.block(node, other);
    world_.network.block(other, node);
  }
  world_.events.after(world_.random.milliseconds(100, 6000), [this, node] {
    for (int other = 0; other <= world_.scenario.nodes; ++other) {
      world_.network.unblock(node, other);
      world_.network.unblock(other, node);
    }
  });
}

void Faults::end_coordinator() {
  world_.end_coordinator();
  if (world_.random.happens(0.3)) damage_log();
}

void Faults::damage_log() {
  if (world_.disk.read(kLogPath).size() <= to_bytes(std::vector<Record>()).size()) return;
  world_.trace("a bit of the last record is flipped");
  world_.disk.flip_bit(kLogPath, static_cast<std::size_t>(world_.random.between(0, kTailBytes)));
}

void Faults::pause_coordinator() {
  CoordinatorProcess* const coordinator = world_.coordinator();
  if (coordinator == nullptr) return;
  world_.trace("the coordinator is paused");
  coordinator->pause();
  world_.events.after(world_.random.milliseconds(50, 4000), [coordinator] { coordinator->go_on(); });
}

void Faults::fill_disk() {
  world_.trace("the disk is full");
  world_.disk.set_full(true);
  world_.events.after(world_.random.milliseconds(100, 5000), [this] { world_.disk.set_full(false); });
}

void Faults::slow_disk() {
  CoordinatorProcess* const coordinator = world_.coordinator();
  if (coordinator != nullptr) coordinator->set_disk_delay(world_.random.milliseconds(10, 1500));
}

void Faults::lose_power() {
  world_.disk.lose_power_after(world_.random.between(0, 5));
}

}  // namespace lockstep::elastic::simulation
