// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/worker_slots.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "lockstep/elastic/member_id.h"

namespace lockstep::elastic {

WorkerSlots::WorkerSlots(Options options) : options_(std::move(options)) {
  for (std::size_t index = 0; index < options_.slots; ++index) {
    slots_.emplace_back(options_.restarts);
    start(index);
  }
}

void WorkerSlots::start(std::size_t index) {
  Slot& slot = slots_[index];
  slot.start_at.reset();
  slot.killed_for.reset();
  slot.started = Clock::now();
  slot.member = draw_id();
  const rendezvous::SpawnOptions spawn = options_.spawn(index, slot.member);
  slot.process.emplace(spawn);
  if (spawn.capture_output) output_.add(*slot.process, fmt::format("[{}] ", index));
}

std::vector<WorkerSlots::Ended> WorkerSlots::reap() {
  std::vector<Ended> ended;
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    Slot& slot = slots_[index];
    if (!slot.process || !slot.process->poll()) continue;
    ended.push_back({.slot = index,
                     .member = slot.member,
                     .pid = slot.process->pid(),
                     .lived = Clock::now() - slot.started,
                     .status = *slot.process->poll(),
                     .killed_for = slot.killed_for});
    slot.process.reset();
    slot.member = 0;
  }
  return ended;
}

std::optional<std::chrono::milliseconds> WorkerSlots::refill(std::size_t index, bool has_trained) {
  Slot& slot = slots_[index];
  const auto wait = slot.policy.after_failure(has_trained, Clock::now());
  if (wait) slot.start_at = Clock::now() + *wait;
  return wait;
}

std::size_t WorkerSlots::restarts(std::size_t slot) const {
  return slots_[slot].policy.restarts();
}

void WorkerSlots::start_due() {
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    if (slots_[index].start_at && *slots_[index].start_at <= Clock::now()) start(index);
  }
}

void WorkerSlots::start_no_more() {
  for (Slot& slot : slots_) slot.start_at.reset();
}

void WorkerSlots::add_to(std::vector<pollfd>& entries) const {
  for (const Slot& slot : slots_) {
    if (slot.process) entries.push_back({slot.process->pid_fd(), POLLIN, 0});
  }
  output_.add_to(entries);
}

std::optional<Clock::time_point> WorkerSlots::next_start() const {
  std::optional<Clock::time_point> next;
  for (const Slot& slot : slots_) {
    if (slot.start_at) next = next ? std::min(*next, *slot.start_at) : slot.start_at;
  }
  return next;
}

std::size_t WorkerSlots::running() const {
  return static_cast<std::size_t>(
      std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.process.has_value(); }));
}

void WorkerSlots::signal_all(int number) const {
  for (const Slot& slot : slots_) {
    if (slot.process) slot.process->signal(number);
  }
}

void WorkerSlots::kill(MemberId member, const std::string& reason) {
  for (Slot& slot : slots_) {
    if (!slot.process || slot.member != member || slot.killed_for) continue;
    slot.killed_for = reason;
    slot.process->signal(SIGKILL);
  }
}

}  // namespace lockstep::elastic
