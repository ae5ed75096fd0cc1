// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "lockstep/base/bytes.h"
#include "lockstep/base/deadline.h"
#include "lockstep/comm/group_numbers.h"
#include "lockstep/comm/helm.h"
#include "lockstep/comm/idle.h"
#include "lockstep/comm/operation.h"
#include "lockstep/comm/runner.h"
#include "lockstep/transport/endpoint.h"

namespace lockstep::comm {

// Runs the operations of a process on its endpoint. One thread at a time *drives*: a thread that waits for an
// operation drives until it has ended, so that a synchronous call costs no change of threads; while nobody
// waits, one background thread drives what was started asynchronously. Thread-safe.
//
// Its parts: the Helm says who drives, the Runner what happens to operations, Idle how to wait for news.
class Engine {
 public:
  explicit Engine(std::unique_ptr<transport::Endpoint> endpoint);
  // Operations under way end with Aborted.
  ~Engine();

  Rank rank() const { return endpoint_->rank(); }
  int world() const { return endpoint_->world(); }

  // Runs `task` while no other thread uses the endpoint, and returns when it has run. Rethrows what it
  // throws.
  void exclusively(const Helm::Task& task) { helm_.exclusively(task); }

  // Registered memory, as Endpoint has it; what a failed operation used is released with the endpoint.
  Bytes allocate(std::size_t bytes);
  void release(Bytes memory);
  void limit_peer_memory(std::size_t bytes);

  // As Communicator::watch_waits(). A wait in which something moves is told of as several, one after the
  // other.
  void watch_waits(std::function<void(bool begins)> watch) { watch_ = std::move(watch); }

  int ranks_on_this_host();

  // Puts the operation on its stream and waits until it has ended; raises its error.
  void run(const std::shared_ptr<Operation>& operation);

  // Puts the operation on its stream; somebody makes it progress even if nobody waits for it.
  void start(const std::shared_ptr<Operation>& operation);

  // Drives, or lets another thread drive, until the operation has ended; raises its error.
  void wait(const std::shared_ptr<Operation>& operation);

  // Breaks the group of the operation, unless the operation has ended.
  void cancel(const std::shared_ptr<Operation>& operation);

  // Breaks all groups, which have these numbers; operations that come later end with the reason.
  void abort(const std::string& reason, const GroupNumbers& numbers);

 private:
  // --- Only whoever has the helm. Whatever goes wrong ends operations, never the driving.
  template <typename Condition>
  void drive(Condition until, bool waits);
  template <typename Condition>
  void turn_until(Condition until, bool waits);

  void await(Operation& operation);
  void forget_peer_memory();

  void need_background();
  void background_loop(const std::stop_token& stop);

  const std::unique_ptr<transport::Endpoint> endpoint_;
  Helm helm_;
  Runner runner_;
  Idle idle_;
  std::function<void(bool begins)> watch_;  // set before anybody waits
  std::size_t peer_memory_limit_ = std::numeric_limits<std::size_t>::max();
  std::uint64_t forgotten_bytes_ = 0;  // of Runner::peer_bytes()
  std::uint32_t turns_ = 0;
  Clock::time_point next_look_{};
  std::atomic<bool> has_background_ = false;
  std::mutex background_mutex_;             // held while the thread is made
  std::optional<std::jthread> background_;  // last: joined before what it uses goes
};

}  // namespace lockstep::comm
