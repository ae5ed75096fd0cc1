// SPDX-License-Identifier: Apache-2.0
#include "tests/elastic/simulation/coordinator_process.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/elastic/message_codec.h"

#include "tests/elastic/simulation/worker.h"

namespace lockstep::elastic::simulation {
namespace {

constexpr Time kRetryInterval = std::chrono::milliseconds(300);
constexpr Time kDiskTime = std::chrono::milliseconds(2);

constexpr RunId kRun = 1;

CoordinatorOptions options_of(const World& world, DecisionLog& log) {
  if (log.run() == 0) log.begin_run(kRun);
  CoordinatorOptions options = world.scenario.options;
  options.run = log.run();
  options.decided = log.decided();
  if (world.scenario.mistake == Mistake::forgets_generation_numbers) return options;
  options.last_generation = log.last_generation();
  options.last_members = log.last_members();
  return options;
}

}  // namespace

CoordinatorProcess::CoordinatorProcess(World& world, int incarnation)
    : Process(world.events, 0),
      world_(world),
      incarnation_(incarnation),
      log_(world.log_path, world.disk),
      coordinator_(options_of(world, log_), world.events.now()) {}

// A connection is that of a member from its newest Join on; what still comes over an older one is nobody's.
bool CoordinatorProcess::binds(const FromMember& message, Connection& connection) {
  const MemberId member = std::visit([](const auto& told) { return told.member; }, message);
  Bound& bound = bound_[member];
  const Join* const join = std::get_if<Join>(&message);
  if (join != nullptr && join->attempt > bound.attempt) bound = {&connection, join->attempt};
  if (bound.connection == nullptr) bound.connection = &connection;  // a Leave, after a restart
  return bound.connection == &connection;
}

void CoordinatorProcess::receive(Connection& connection, const std::vector<std::byte>& frame) {
  const ConstBytes bytes(frame);
  const Header header = decode_header(bytes.first(kHeaderBytes), Sender::member);
  const FromMember message = decode_from_member(header.type, bytes.subspan(kHeaderBytes));
  if (binds(message, connection)) hand_in(message);
}

void CoordinatorProcess::hand_in(const FromMember& message) {
  const Mistake mistake = world_.scenario.mistake;
  if (const Vote* vote = std::get_if<Vote>(&message);
      vote != nullptr && mistake == Mistake::decides_without_all_votes) {
    return call([&] { return forge_votes(*vote); });
  }
  FromMember heard = message;
  if (Join* join = std::get_if<Join>(&heard);
      join != nullptr && mistake == Mistake::forgets_generation_numbers) {
    join->generation = 0;
  }
  call([&] { return coordinator_.hear(heard, events_.now()); });
}

// One vote for all.
Outputs CoordinatorProcess::forge_votes(const Vote& vote) {
  Outputs outputs;
  for (const MemberId member : std::vector(coordinator_.members())) {
    const Vote forged = {.member = member, .generation = vote.generation, .step = vote.step};
    for (Output& output : coordinator_.hear(forged, events_.now())) outputs.push_back(std::move(output));
  }
  return outputs;
}

void CoordinatorProcess::closed(Connection& connection) {
  for (auto& [member, bound] : bound_) {
    if (bound.connection != &connection) continue;
    bound.connection = nullptr;
    call([&, lost = member] { return coordinator_.lose(lost, "its connection was closed", events_.now()); });
  }
}

template <typename Call>
void CoordinatorProcess::call(Call&& ask) {
  const std::int64_t before = coordinator_.decided();
  Outputs outputs = ask();
  world_.checker.see_outputs(before, coordinator_.decided(), outputs);
  std::ranges::move(outputs, std::back_inserter(outputs_));
  arm();
  work();
}

void CoordinatorProcess::arm() {
  const std::optional<Time> deadline = coordinator_.next_deadline();
  if (!deadline) return;
  after(std::max(Time(0), *deadline - events_.now()), [this, armed = ++armed_] {
    if (armed == armed_) call([&] { return coordinator_.tick(events_.now()); });
  });
}

void CoordinatorProcess::work() {
  while (!outputs_.empty() && !is_recording_) {
    const Output output = std::move(outputs_.front());
    outputs_.pop_front();
    if (const Record* next = std::get_if<Record>(&output)) {
      is_recording_ = true;
      after(world_.disk.duration(kDiskTime), [this, kept = *next] { record(kept); });
    } else if (const Send* send = std::get_if<Send>(&output)) {
      perform_output(*send);
    } else if (const Fence* fence = std::get_if<Fence>(&output)) {
      perform_output(*fence);
    } else {
      return world_.end_run(std::get<End>(output));
    }
  }
}

void CoordinatorProcess::record(const Record& record) {
  try {
    log_.append(record);
  } catch (const UsageError&) {
    if (world_.disk.is_down()) return world_.end_coordinator();
    world_.trace("the log of the coordinator cannot be written");
    return after(kRetryInterval, [this, kept = record] { this->record(kept); });
  }
  world_.trace("recorded: generation {} of {} members, decided {}{}", record.generation,
               record.members.size(), record.decided, record.is_rollback ? ", a rollback" : "");
  is_recording_ = false;
  work();
}

void CoordinatorProcess::perform_output(const Send& send) {
  if (const Place* place = std::get_if<Place>(&send.message)) {
    std::vector<Brought> brought;
    for (const MemberId member : place->members) {
      Worker* const worker = world_.worker(member);
      if (worker != nullptr) brought.push_back(worker->brings());
    }
    world_.checker.see_place(incarnation_, *place, brought);
  }
  if (const Decision* decision = std::get_if<Decision>(&send.message)) {
    world_.checker.see_decision(*decision);
    world_.trace("decided: step {} in generation {}{}", decision->step, decision->generation,
                 decision->regroup ? ", regroup" : "");
  }
  if (const Abandon* abandon = std::get_if<Abandon>(&send.message)) {
    world_.trace("abandoned: generation {}: {}", abandon->generation, abandon->reason);
  }
  const auto bound = bound_.find(send.to);
  if (bound == bound_.end() || bound->second.connection == nullptr) return;
  world_.network.send(*bound->second.connection, *this, encode(send.message));
}

void CoordinatorProcess::perform_output(const Fence& fence) {
  world_.trace("fenced: member {:x}: {}", fence.member, fence.reason);
  // Not every host can be reached at once.
  Random& random = world_.random;
  after(random.happens(0.2) ? random.milliseconds(2000, 8000) : random.milliseconds(1, 100),
        [this, member = fence.member] {
          Worker* const worker = world_.worker(member);
          if (worker != nullptr) world_.end_worker(*worker, false);
        });
}

}  // namespace lockstep::elastic::simulation
