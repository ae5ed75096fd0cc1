// SPDX-License-Identifier: Apache-2.0
#include "tests/elastic/simulation/faults.h"

#include <algorithm>

#include <fmt/format.h>

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
    next();
  });
}

void Faults::inject() {
  Random& random = world_.random;
  switch (random.between(0, 16)) {
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
    case 13:
      return damage_checkpoint();
    default:
      return break_disk();
  }
}

void Faults::repair() {
  world_.trace("faults are over");
  is_over_ = true;
  world_.network.set_faults({});
  world_.network.unblock_all();
  for (SimulatedDisk* disk : {&world_.disk, &world_.shared_disk}) {
    disk->set_full(false);
    disk->set_slow(false);
    disk->fail_after(-1);
    disk->go_down_after(-1);
  }
  for (Worker* worker : world_.workers()) {
    worker->slow_down(1);
    worker->go_on();
  }
  if (CoordinatorProcess* coordinator = world_.coordinator()) {
    coordinator->go_on();
  }
}

Worker* Faults::any_worker() {
  const std::vector<Worker*> workers = world_.workers();
  return workers.empty() ? nullptr : workers[world_.random.number() % workers.size()];
}

void Faults::end_worker() {
  Worker* const worker = any_worker();
  if (worker == nullptr) return;
  const bool silently = world_.random.happens(0.3);
  world_.tally.add(silently ? Fault::host_loss : Fault::crash);
  world_.end_worker(*worker, silently);
}

void Faults::pause_worker() {
  Worker* const worker = any_worker();
  if (worker == nullptr) return;
  world_.trace("member {:x} is paused", worker->id());
  world_.tally.add(Fault::pause);
  worker->pause();
  world_.events.after(world_.random.milliseconds(50, 6000), [worker] { worker->go_on(); });
}

void Faults::hang_worker() {
  Worker* const worker = any_worker();
  if (worker == nullptr || !world_.random.happens(0.5)) return;
  world_.trace("member {:x} hangs", worker->id());
  world_.tally.add(Fault::hang);
  worker->hang();
}

void Faults::slow_worker() {
  Worker* const worker = any_worker();
  if (worker == nullptr) return;
  world_.trace("member {:x} is slow", worker->id());
  world_.tally.add(Fault::slow_process);
  worker->slow_down(world_.random.between(2, 30));
  world_.events.after(world_.random.milliseconds(500, 5000), [worker] { worker->slow_down(1); });
}

void Faults::add_worker() {
  world_.tally.add(Fault::newcomer);
  world_.start_worker(world_.random.between(1, world_.scenario.nodes));
}

void Faults::cut(bool one_way, Time time) {
  const int from = any_node();
  const int to = any_node();
  if (from == to) return;
  world_.trace("the link from node {} to node {} is cut{}", from, to, one_way ? "" : ", and back");
  world_.tally.add(one_way ? Fault::one_way_partition : Fault::partition);
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
  world_.tally.add(Fault::partition);
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
  if (world_.coordinator() == nullptr) return;
  world_.tally.add(Fault::crash);
  world_.end_coordinator();
  if (world_.random.happens(0.3)) damage_log();
}

void Faults::damage_log() {
  const std::size_t size = world_.disk.read(world_.log_path).size();
  if (size <= to_bytes(std::vector<Record>()).size()) return;
  world_.trace("a bit of the last record is flipped");
  world_.disk.flip_bit(world_.log_path,
                       size - 1 - static_cast<std::size_t>(world_.random.between(0, kTailBytes)));
}

// Never of the last good one: nobody can promise anything then.
void Faults::damage_checkpoint() {
  const std::set<std::int64_t>& promised = world_.checker.promised();
  if (promised.size() < 2) return;
  const std::int64_t step = world_.random.happens(0.7) ? *promised.rbegin() : *promised.begin();
  const std::string folder = fmt::format("{}/step-{}", world_.store_folder(), step);
  std::vector<std::string> names = test::names_in(folder);
  std::ranges::sort(names);
  const std::string path = folder + "/" + names[world_.random.number() % names.size()];
  const std::size_t size = world_.shared_disk.read(path).size();
  if (size == 0) return;
  world_.trace("a bit of {} of the checkpoint of step {} is flipped", path.substr(folder.size() + 1), step);
  world_.shared_disk.flip_bit(path, world_.random.number() % size);
  world_.checker.see_damage(step);
}

void Faults::pause_coordinator() {
  CoordinatorProcess* const coordinator = world_.coordinator();
  if (coordinator == nullptr) return;
  world_.trace("the coordinator is paused");
  world_.tally.add(Fault::pause);
  coordinator->pause();
  world_.events.after(world_.random.milliseconds(50, 4000), [coordinator] { coordinator->go_on(); });
}

void Faults::fill_disk() {
  SimulatedDisk& disk = any_disk();
  world_.trace("a disk is full");
  disk.set_full(true);
  world_.events.after(world_.random.milliseconds(100, 5000), [&disk] { disk.set_full(false); });
}

void Faults::slow_disk() {
  SimulatedDisk& disk = any_disk();
  world_.trace("a disk is slow");
  disk.set_slow(true);
  world_.events.after(world_.random.milliseconds(100, 5000), [&disk] { disk.set_slow(false); });
}

// In the middle of what is done on it next.
void Faults::break_disk() {
  SimulatedDisk& disk = any_disk();
  const int operations = world_.random.between(0, 25);
  if (world_.random.happens(0.3)) {
    disk.fail_after(operations);
  } else {
    disk.go_down_after(operations);
  }
}

}  // namespace lockstep::elastic::simulation
