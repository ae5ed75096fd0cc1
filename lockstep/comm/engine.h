// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/comm/idle.h"
#include "lockstep/comm/operation.h"
#include "lockstep/comm/scratch_pool.h"
#include "lockstep/transport/endpoint.h"

namespace lockstep::comm {

// Runs the operations of a process on its endpoint. One thread at a time *drives*: a thread that waits for an
// operation drives until it has ended, so that a synchronous call costs no change of threads; while nobody
// waits, one background thread drives what was started asynchronously. Thread-safe.
class Engine {
 public:
  explicit Engine(std::unique_ptr<transport::Endpoint> endpoint);
  ~Engine();

  Rank rank() const { return endpoint_->rank(); }
  int world() const { return endpoint_->world(); }

  // Runs `task` while no other thread uses the endpoint, and returns when it has run. Rethrows what it
  // throws.
  void exclusively(const std::function<void(transport::Endpoint&)>& task);

  // Registered memory. What a failed operation had granted is not given out again, because a peer that is
  // frozen may write into it when it goes on; it goes with the endpoint.
  Bytes allocate(std::size_t bytes);
  void forget_peer_memory();
  void release(Bytes memory);

  // Puts the operation on its stream and waits until it has ended; raises its error.
  void run(const std::shared_ptr<Operation>& operation);

  // Puts the operation on its stream; somebody makes it progress even if nobody waits for it.
  void start(const std::shared_ptr<Operation>& operation);

  // Drives, or lets another thread drive, until the operation has ended; raises its error.
  void wait(const std::shared_ptr<Operation>& operation);

  void cancel(const std::shared_ptr<Operation>& operation);

 private:
  struct Task {
    const std::function<void(transport::Endpoint&)>* run = nullptr;
    bool done = false;
    std::exception_ptr error;
  };

  // --- Only the driving thread.
  // Whatever goes wrong ends operations, never the driving.
  template <typename Condition>
  void drive(Condition until);
  template <typename Condition>
  void turn_until(Condition until);
  void break_all(const std::exception_ptr& error);
  bool is_refused(const std::shared_ptr<Operation>& operation);
  void tell_call(const Operation& operation);
  void run_tasks();
  bool advance_all();
  bool advance(const std::shared_ptr<Operation>& operation);
  void enqueue(const std::shared_ptr<Operation>& operation);
  void begin_ready();
  void begin(const std::shared_ptr<Operation>& operation);
  void bind(Operation& operation);
  void end(Operation& operation, std::exception_ptr error);
  void break_group(const std::shared_ptr<Operation>& operation, const std::exception_ptr& error);
  void look_at_stalled();
  bool look_at(const std::shared_ptr<Operation>& operation);
  void beat(Operation& operation);
  void show_notice(const Operation& operation);

  class Turn;
  class Sleeper;
  void quarantine(const Operation& operation);
  void background_loop(const std::stop_token& stop);

  const std::unique_ptr<transport::Endpoint> endpoint_;
  ScratchPool scratch_;
  Idle idle_;
  std::vector<std::shared_ptr<Operation>> active_;  // begun and not ended
  std::vector<std::shared_ptr<Operation>> ready_;   // first of their streams, not yet begun
  std::vector<std::unique_ptr<Execution>> idle_executions_;
  std::vector<Bytes> quarantined_;  // what failed operations had granted to peers
  std::uint32_t turns_ = 0;
  Clock::time_point last_look_{};

  // Whoever turns this to true drives. The mutex is for those who find that somebody else does.
  std::atomic<bool> driven_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Task*> tasks_;  // for whoever drives
  std::atomic<bool> has_tasks_{false};
  std::atomic<int> sleepers_{0};               // threads that `changed_` must wake
  std::atomic<int> waiters_{0};                // those of them that would drive for themselves
  std::atomic<std::size_t> in_background_{0};  // operations started so that have not ended
  std::optional<std::jthread> background_;     // last: joined before what it uses goes
};

}  // namespace lockstep::comm
