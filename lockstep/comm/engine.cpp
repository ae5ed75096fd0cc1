// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/cpu.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/diagnose.h"
#include "lockstep/comm/group.h"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;

// How often operations that do not move are looked at. Well below the 100 ms within which ranks that disagree
// must know.
constexpr auto kLookInterval = 10ms;
// More than writing a long message into the memory of a peer takes.
constexpr auto kWritingPatience = 200ms;
// Where notices must be sent, not every beat is.
constexpr std::uint32_t kBeatsPerPush = 4;
// How many turns without a sleep may pass before the clock is read.
constexpr std::uint32_t kTurnsPerClock = 256;

bool is_crowded(const transport::Endpoint& endpoint) {
  int local = 1;
  for (Rank peer = 0; peer < endpoint.world(); ++peer) {
    if (peer != endpoint.rank() && endpoint.shares_host(peer)) ++local;
  }
  return local > usable_cores();
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  }
}

std::exception_ptr broken(const std::string& why) {
  return std::make_exception_ptr(
      Aborted(fmt::format("the group is unusable since an earlier failure: {}", why)));
}

}  // namespace

// The right to drive until the end of the scope, whatever happens, if nobody else has it.
class Engine::Turn {
 public:
  explicit Turn(Engine& engine) : engine_(engine), taken_(!engine.driven_.exchange(true)) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (!taken_) return;
    // Sequentially consistent, as are the sleepers' count and their look at `driven_`: one of the two sees
    // the other.
    engine_.driven_.store(false);
    if (engine_.sleepers_.load() == 0 && engine_.in_background_.load() == 0) return;
    { const std::lock_guard lock(engine_.mutex_); }
    engine_.changed_.notify_all();
  }

  explicit operator bool() const { return taken_; }

 private:
  Engine& engine_;
  bool taken_;
};

// Counts a thread that sleeps on `changed_`, from before its first look at what it waits for.
class Engine::Sleeper {
 public:
  explicit Sleeper(Engine& engine) : engine_(engine) { ++engine_.sleepers_; }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() { --engine_.sleepers_; }

 private:
  Engine& engine_;
};

Engine::Engine(std::unique_ptr<transport::Endpoint> endpoint)
    : endpoint_(std::move(endpoint)), scratch_(*endpoint_), idle_(*endpoint_, is_crowded(*endpoint_)) {}

Engine::~Engine() {
  if (background_) {
    background_->request_stop();
    endpoint_->wake();
    changed_.notify_all();
    background_.reset();
  }
  break_all(std::make_exception_ptr(
      Aborted("the communicator was destroyed here while an operation was under way")));
}

void Engine::exclusively(const std::function<void(transport::Endpoint&)>& task) {
  if (const Turn turn(*this); turn) return task(*endpoint_);
  std::unique_lock lock(mutex_);
  const Sleeper sleeper(*this);
  Task entry{.run = &task, .done = false, .error = nullptr};
  tasks_.push_back(&entry);
  has_tasks_ = true;
  endpoint_->wake();
  // The driver may leave without having seen the task; then it is ours to take over.
  changed_.wait(lock, [&] { return entry.done || !driven_.load(); });
  if (!entry.done) {
    std::erase(tasks_, &entry);
    lock.unlock();
    return exclusively(task);
  }
  if (entry.error) std::rethrow_exception(entry.error);
}

Bytes Engine::allocate(std::size_t bytes) {
  Bytes memory;
  exclusively([&](transport::Endpoint& endpoint) { memory = endpoint.allocate(bytes); });
  return memory;
}

int Engine::ranks_on_this_host() {
  int count = 1;
  exclusively([&](transport::Endpoint& endpoint) {
    for (Rank peer = 0; peer < endpoint.world(); ++peer) {
      if (peer != endpoint.rank() && endpoint.shares_host(peer)) ++count;
    }
  });
  return count;
}

void Engine::forget_peer_memory() {
  exclusively([](transport::Endpoint& endpoint) { endpoint.forget_peer_memory(); });
}

void Engine::release(Bytes memory) {
  exclusively([&](transport::Endpoint& endpoint) {
    const bool in_danger = std::any_of(quarantined_.begin(), quarantined_.end(),
                                       [memory](Bytes granted) { return overlap(granted, memory); });
    if (!in_danger) endpoint.release(memory);
  });
}

void Engine::run_tasks() {
  std::vector<Task*> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
    has_tasks_ = false;
  }
  for (Task* task : tasks) {
    try {
      (*task->run)(*endpoint_);
    } catch (...) {
      task->error = std::current_exception();
    }
  }
  {
    const std::lock_guard lock(mutex_);
    for (Task* task : tasks) task->done = true;
  }
  changed_.notify_all();
}

void Engine::run(const std::shared_ptr<Operation>& operation) {
  bool enqueued = false;
  if (const Turn turn(*this); turn) {
    enqueue(operation);
    enqueued = true;
    drive([&] { return operation->ended.load(std::memory_order_relaxed); });
  }
  if (!enqueued) exclusively([&](transport::Endpoint&) { enqueue(operation); });
  wait(operation);
}

void Engine::start(const std::shared_ptr<Operation>& operation) {
  {
    const std::lock_guard lock(mutex_);
    if (!background_) background_.emplace([this](const std::stop_token& stop) { background_loop(stop); });
  }
  operation->in_background = true;
  ++in_background_;
  try {
    exclusively([&](transport::Endpoint&) { enqueue(operation); });
  } catch (...) {
    --in_background_;
    throw;
  }
}

void Engine::wait(const std::shared_ptr<Operation>& operation) {
  while (!operation->ended.load(std::memory_order_acquire)) {
    if (const Turn turn(*this); turn) {
      drive([&] { return operation->ended.load(std::memory_order_relaxed); });
      break;
    }
    std::unique_lock lock(mutex_);
    const Sleeper sleeper(*this);
    ++waiters_;
    endpoint_->wake();
    changed_.wait(lock, [&] { return operation->ended.load() || !driven_.load(); });
    --waiters_;
  }
  if (operation->error) std::rethrow_exception(operation->error);
}

void Engine::cancel(const std::shared_ptr<Operation>& operation) {
  exclusively([&](transport::Endpoint&) {
    if (operation->ended) return;
    break_group(operation, std::make_exception_ptr(
                               Aborted(fmt::format("{} was cancelled by its caller", place(*operation)))));
  });
}

template <typename Condition>
void Engine::drive(Condition until) {
  try {
    turn_until(until);
  } catch (const std::exception&) {
    // An operation that stayed would go on with memory that its caller no longer keeps.
    break_all(std::current_exception());
  }
}

template <typename Condition>
void Engine::turn_until(Condition until) {
  while (!until()) {
    if (has_tasks_.load(std::memory_order_relaxed)) run_tasks();
    bool time_passed = false;
    if (advance_all()) {
      idle_.moved();
    } else {
      time_passed = idle_.pause(kLookInterval);
    }
    if ((time_passed || ++turns_ % kTurnsPerClock == 0) && Clock::now() - last_look_ >= kLookInterval)
      look_at_stalled();
  }
}

void Engine::break_all(const std::exception_ptr& error) {
  const auto has_ended = [](const auto& operation) { return operation->ended.load(); };
  std::erase_if(active_, has_ended);
  std::erase_if(ready_, has_ended);
  while (!active_.empty() || !ready_.empty()) {
    break_group(active_.empty() ? ready_.front() : active_.front(), error);
    std::erase_if(active_, has_ended);
    std::erase_if(ready_, has_ended);
  }
}

bool Engine::advance_all() {
  bool moved = false;
  bool some_ended = false;
  for (const std::shared_ptr<Operation>& operation : active_) {
    if (!operation->ended.load(std::memory_order_relaxed) && advance(operation)) {
      moved = operation->moved_since_look = true;
    }
    some_ended |= operation->ended.load(std::memory_order_relaxed);
  }
  begin_ready();
  if (some_ended) {
    std::erase_if(active_,
                  [](const auto& operation) { return operation->ended.load(std::memory_order_relaxed); });
  }
  return moved;
}

bool Engine::advance(const std::shared_ptr<Operation>& operation) {
  if (operation->mismatch) return look_at(operation);
  try {
    const bool moved = operation->execution->advance();
    if (operation->execution->done()) {
      tell_call(*operation);
      end(*operation, nullptr);
    }
    return moved;
  } catch (const transport::EnvelopeMismatch& mismatch) {
    // Both sides say what they are doing, so that both can be named.
    operation->mismatch = mismatch;
    operation->deadline = Deadline::after(operation->timeout);
    show_notice(*operation);
    return look_at(operation);
  } catch (const std::exception&) {
    break_group(operation, std::current_exception());
  }
  return true;
}

void Engine::enqueue(const std::shared_ptr<Operation>& operation) {
  Group& group = *operation->group;
  if (group.failure) return end(*operation, broken(*group.failure));
  if (operation->point_to_point) return begin(operation);
  Group::Stream& stream = group.streams[operation->stream];
  operation->sequence = stream.next_sequence;
  // Nobody knows of the call yet: if there is no memory for it, it is as if it had not been made.
  if (stream.queue.empty()) bind(*operation);
  ++stream.next_sequence;
  stream.queue.push_back(operation);
  if (stream.queue.size() == 1) begin(operation);
  begin_ready();
}

// A loop, not a recursion: an operation may end as soon as it begins, and so may thousands behind it.
void Engine::begin_ready() {
  while (!ready_.empty()) {
    const std::shared_ptr<Operation> next = std::move(ready_.back());
    ready_.pop_back();
    if (!next->ended) begin(next);
  }
}

void Engine::begin(const std::shared_ptr<Operation>& operation) {
  Group& group = *operation->group;
  if (!operation->point_to_point) {
    endpoint_->publish(group.collective_stream(operation->stream), operation->sequence, operation->notice);
  }
  try {
    if (!operation->execution) bind(*operation);
  } catch (const std::exception& error) {
    return break_group(
        operation, std::make_exception_ptr(Aborted(fmt::format("{}: {}", place(*operation), error.what()))));
  }
  if (is_refused(operation)) return;
  advance(operation);
  if (!operation->ended.load(std::memory_order_relaxed)) active_.push_back(operation);
}

// An operation that hears nothing of its peers looks at them before it begins, and so does the one after it.
bool Engine::is_refused(const std::shared_ptr<Operation>& operation) {
  if (operation->point_to_point || operation->group->size() == 1) return false;
  std::optional<Contract>& unheard = operation->group->streams[operation->stream].unheard;
  const bool hears = operation->script->hears();
  if (hears && !unheard) return false;
  try {
    for (const Port& port : operation->ports) {
      if (port.channel != nullptr) port.channel->pump();
    }
    if (const std::exception_ptr error = diagnose_unheard(*operation, *endpoint_)) {
      break_group(operation, error);
      return true;
    }
  } catch (const std::exception&) {
    break_group(operation, std::current_exception());
    return true;
  }
  unheard = hears ? std::nullopt : std::optional(operation->contract);
  return false;
}

// Peers that wait for another call can see which one this was: nobody drives for it any more.
void Engine::tell_call(const Operation& operation) {
  if (operation.point_to_point || operation.script->hears()) return;
  show_notice(operation);
  for (const Port& port : operation.ports) {
    if (port.channel != nullptr) port.channel->pump();
  }
}

void Engine::bind(Operation& operation) {
  if (idle_executions_.empty()) idle_executions_.push_back(std::make_unique<Execution>());
  operation.execution = std::move(idle_executions_.back());
  idle_executions_.pop_back();
  Binding& binding = operation.execution->binding;
  binding.script = operation.script;
  binding.ports = operation.ports;
  binding.envelope = {.contract = operation.digest, .sequence = operation.sequence};
  binding.arithmetic = operation.arithmetic;
  binding.buffers.assign(operation.buffers.begin(), operation.buffers.end());
  binding.scratch.clear();
  operation.execution->start();
  const schedule::Program& program = operation.script->program();
  try {
    for (std::size_t i = program.scratch_from; i < program.buffer_elements.size(); ++i) {
      binding.scratch.push_back(
          scratch_.take(program.buffer_elements[i] * size_of(operation.arithmetic.dtype)));
      binding.buffers.push_back(binding.scratch.back().data());
    }
  } catch (const std::exception&) {
    for (Bytes memory : binding.scratch) scratch_.give_back(memory);
    idle_executions_.push_back(std::move(operation.execution));
    throw;
  }
}

void Engine::end(Operation& operation, std::exception_ptr error) {
  // Memory of a failed operation is not used again: a peer may still be writing to it.
  if (!error) {
    for (Bytes memory : operation.execution->binding.scratch) scratch_.give_back(memory);
  }
  if (operation.execution) {
    operation.execution->release();
    idle_executions_.push_back(std::move(operation.execution));
  }
  operation.error = std::move(error);
  // Sequentially consistent, as are the waiters' count and their look at it: one of the two sees the other.
  operation.ended.store(true);
  if (operation.in_background) --in_background_;
  if (waiters_.load() > 0) {
    { const std::lock_guard lock(mutex_); }
    changed_.notify_all();
  }
  if (operation.point_to_point || operation.group->failure) return;
  auto& queue = operation.group->streams[operation.stream].queue;
  if (queue.empty() || queue.front().get() != &operation) return;
  queue.pop_front();
  if (!queue.empty()) ready_.push_back(queue.front());
}

void Engine::break_group(const std::shared_ptr<Operation>& operation, const std::exception_ptr& error) {
  Group& group = *operation->group;
  const std::string why = message_of(error);
  group.failure = why;
  endpoint_->fail(group.first_stream, why);
  std::vector<std::shared_ptr<Operation>> doomed = {operation};
  for (const auto& other : active_) {
    if (other->group == operation->group && other != operation) doomed.push_back(other);
  }
  for (Group::Stream& stream : group.streams) {
    doomed.insert(doomed.end(), stream.queue.begin(), stream.queue.end());
    stream.queue.clear();
  }
  std::erase_if(doomed, [](const auto& other) { return other->ended.load(); });
  // All at first, for ranks that fail together wait for each other below; then with one patience for all.
  for (const auto& other : doomed) {
    if (other->execution) other->execution->abandon();
  }
  const Deadline patience = Deadline::after(kWritingPatience);
  for (const auto& other : doomed) {
    if (other->ended) continue;
    if (other->execution) {
      other->execution->settle(patience);
      quarantine(*other);
    }
    end(*other, other == operation ? error : broken(why));
  }
}

void Engine::look_at_stalled() {
  last_look_ = Clock::now();
  for (const std::shared_ptr<Operation>& operation : active_) {
    if (operation->ended) continue;
    if (std::exchange(operation->moved_since_look, false)) {
      operation->deadline = Deadline::after(operation->timeout);
      show_notice(*operation);
    } else {
      beat(*operation);
      look_at(operation);
    }
  }
  std::erase_if(active_, [](const auto& operation) { return operation->ended.load(); });
}

bool Engine::look_at(const std::shared_ptr<Operation>& operation) {
  std::exception_ptr error;
  try {
    error = diagnose(*operation, *endpoint_);
    if (!error) return false;
    // What a peer sent before it left or failed counts. The evidence came first, so all of it is here by now.
    if (!operation->mismatch && operation->execution->advance()) {
      operation->moved_since_look = true;
      if (operation->execution->done()) end(*operation, nullptr);
      return true;
    }
  } catch (const transport::EnvelopeMismatch&) {
    // The diagnosis stands: it is older than this message.
  } catch (const std::exception&) {
    error = std::current_exception();
  }
  break_group(operation, error);
  return true;
}

void Engine::quarantine(const Operation& operation) {
  const std::vector<std::size_t>& elements = operation.script->program().buffer_elements;
  const std::vector<std::byte*>& buffers = operation.execution->binding.buffers;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    quarantined_.emplace_back(buffers[i], elements[i] * size_of(operation.contract.dtype));
  }
}

// While stalled: we live, and this is whom we wait for.
void Engine::beat(Operation& operation) {
  if (operation.point_to_point) return;
  const std::vector<Waiting> waiting = operation.execution->waiting();
  operation.pulse = {.beats = operation.pulse.beats + 1,
                     .waits_for = waiting.empty() ? -1 : waiting.front().peer};
  set_pulse(operation.notice, operation.pulse);
  endpoint_->publish(operation.group->collective_stream(operation.stream), operation.sequence,
                     operation.notice);
  if (operation.pulse.beats % kBeatsPerPush == 0) show_notice(operation);
  listen(operation, *endpoint_);
}

// From now on peers that wonder can see where we are.
void Engine::show_notice(const Operation& operation) {
  if (operation.point_to_point) return;
  const Group& group = *operation.group;
  for (Rank rank = 0; rank < group.size(); ++rank) {
    if (rank == group.rank) continue;
    endpoint_->push_notice(group.members[rank], group.collective_stream(operation.stream));
  }
}

void Engine::background_loop(const std::stop_token& stop) {
  const auto nothing_to_do = [&] {
    return stop.stop_requested() || in_background_.load() == 0 || waiters_.load() > 0;
  };
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(mutex_);
      // Not a Sleeper: it need not be woken while nothing is to be done here. The time limit only bounds how
      // long a stop request can be missed.
      changed_.wait_for(lock, 100ms,
                        [&] { return stop.stop_requested() || (!driven_.load() && !nothing_to_do()); });
    }
    if (nothing_to_do()) continue;
    const Turn turn(*this);
    if (!turn) continue;
    drive(nothing_to_do);
  }
}

}  // namespace lockstep::comm
