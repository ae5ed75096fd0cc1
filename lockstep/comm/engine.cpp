// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/engine.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/cpu.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/diagnose.h"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;

// How often operations that do not move are looked at. Well below the 100 ms within which ranks that disagree
// must know.
constexpr auto kLookInterval = 10ms;
// A look asks every peer. Where there are thousands, that takes longer than the interval, and there must be
// time for moving bytes, too.
constexpr int kLookShare = 10;
constexpr auto kLongestLookInterval = 100ms;
// How many turns without a sleep may pass before the clock is read.
constexpr std::uint32_t kTurnsPerClock = 256;

int ranks_on_host_of(const transport::Endpoint& endpoint) {
  int count = 1;
  for (Rank peer = 0; peer < endpoint.world(); ++peer) {
    if (peer != endpoint.rank() && endpoint.shares_host(peer)) ++count;
  }
  return count;
}

// Without what it should say when there is no memory for it.
std::exception_ptr destroyed() try {
  return std::make_exception_ptr(
      Aborted("the communicator was destroyed here while an operation was under way"));
} catch (const std::bad_alloc&) {
  return std::current_exception();
}

// Tells whoever watches of a wait, for the time of a scope.
class Watched {
 public:
  explicit Watched(const std::function<void(bool begins)>& watch) : watch_(watch) {
    if (watch_) watch_(true);
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched() {
    if (watch_) watch_(false);
  }

 private:
  const std::function<void(bool begins)>& watch_;
};

}  // namespace

Engine::Engine(std::unique_ptr<transport::Endpoint> endpoint)
    : endpoint_(std::move(endpoint)),
      helm_(*endpoint_),
      runner_(*endpoint_, helm_),
      idle_(*endpoint_, ranks_on_host_of(*endpoint_) > usable_cores()) {}

Engine::~Engine() {
  if (background_) {
    background_->request_stop();
    endpoint_->wake();
    helm_.wake_all();
    background_.reset();
  }
  runner_.break_all(destroyed());
}

Bytes Engine::allocate(std::size_t bytes) {
  Bytes memory;
  exclusively([&](transport::Endpoint& endpoint) { memory = endpoint.allocate(bytes); });
  return memory;
}

void Engine::release(Bytes memory) {
  exclusively([&](transport::Endpoint&) { runner_.release(memory); });
}

void Engine::limit_peer_memory(std::size_t bytes) {
  exclusively([&](transport::Endpoint&) { peer_memory_limit_ = bytes; });
}

void Engine::forget_peer_memory() {
  if (runner_.peer_bytes() - forgotten_bytes_ < peer_memory_limit_) return;
  endpoint_->forget_peer_memory();
  forgotten_bytes_ = runner_.peer_bytes();
}

int Engine::ranks_on_this_host() {
  int count = 0;
  exclusively([&](transport::Endpoint& endpoint) { count = ranks_on_host_of(endpoint); });
  return count;
}

void Engine::run(const std::shared_ptr<Operation>& operation) {
  const Watched watched(watch_);
  operation->awaited = true;
  bool enqueued = false;
  if (const Helm::Turn turn(helm_); turn) {
    runner_.enqueue(operation);
    enqueued = true;
    drive([&] { return operation->ended.load(std::memory_order_relaxed); }, true);
  }
  if (!enqueued) exclusively([&](transport::Endpoint&) { runner_.enqueue(operation); });
  await(*operation);
}

// Not by std::call_once: a thread may find no memory to begin with, and the flag of one that threw is not
// left as it was everywhere.
void Engine::need_background() {
  if (has_background_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(background_mutex_);
  if (!background_) background_.emplace([this](const std::stop_token& stop) { background_loop(stop); });
  has_background_.store(true, std::memory_order_release);
}

void Engine::start(const std::shared_ptr<Operation>& operation) {
  need_background();
  operation->in_background = true;
  helm_.begin_in_background();
  try {
    exclusively([&](transport::Endpoint&) { runner_.enqueue(operation); });
  } catch (...) {
    helm_.end_in_background();
    throw;
  }
}

void Engine::wait(const std::shared_ptr<Operation>& operation) {
  const Watched watched(watch_);
  operation->awaited.store(true, std::memory_order_relaxed);
  await(*operation);
}

void Engine::await(Operation& operation) {
  while (!operation.ended.load(std::memory_order_acquire)) {
    if (const Helm::Turn turn(helm_); turn) {
      drive([&] { return operation.ended.load(std::memory_order_relaxed); }, true);
      break;
    }
    helm_.sleep_until(operation.ended);
  }
  if (operation.error) std::rethrow_exception(operation.error);
}

void Engine::cancel(const std::shared_ptr<Operation>& operation) {
  exclusively([&](transport::Endpoint&) {
    if (operation->ended) return;
    runner_.break_group(
        operation,
        std::make_exception_ptr(Aborted(fmt::format("{} was cancelled by its caller", place(*operation)))));
  });
}

void Engine::abort(const std::string& reason, const GroupNumbers& numbers) {
  exclusively([&](transport::Endpoint&) { runner_.abort(reason, numbers); });
}

template <typename Condition>
void Engine::drive(Condition until, bool waits) {
  try {
    turn_until(until, waits);
  } catch (const std::exception&) {
    // An operation that stayed would go on with memory that its caller no longer keeps.
    runner_.break_all(std::current_exception());
  }
}

template <typename Condition>
void Engine::turn_until(Condition until, bool waits) {
  bool has_moved = false;
  while (!until()) {
    if (helm_.has_tasks()) helm_.run_tasks();
    bool time_passed = false;
    if (runner_.advance()) {
      forget_peer_memory();
      idle_.moved();
      has_moved = true;
    } else {
      time_passed = idle_.pause(kLookInterval);
    }
    const bool may_look = time_passed || ++turns_ % kTurnsPerClock == 0;
    if (!may_look) continue;
    const Clock::time_point now = Clock::now();
    if (now < next_look_) continue;
    runner_.look_at_stalled();
    if (std::exchange(has_moved, false) && waits && watch_) {
      watch_(false);
      watch_(true);
    }
    next_look_ = now + std::clamp<Clock::duration>(kLookShare * (Clock::now() - now), kLookInterval,
                                                   kLongestLookInterval);
  }
}

void Engine::background_loop(const std::stop_token& stop) {
  const auto nothing_to_do = [&] { return stop.stop_requested() || !helm_.wants_background(); };
  while (!stop.stop_requested()) {
    helm_.sleep_until_wanted(stop);
    if (nothing_to_do()) continue;
    const Helm::Turn turn(helm_);
    if (!turn) continue;
    drive(nothing_to_do, false);
  }
}

}  // namespace lockstep::comm
