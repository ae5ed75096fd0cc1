// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <stop_token>
#include <vector>

#include "lockstep/transport/endpoint.h"

namespace lockstep::comm {

// Who drives: the one thread at a time that may use the endpoint, and the threads that wait for it. A thread
// that finds nobody at the helm takes it; one that finds somebody hands in a task or sleeps. A background
// thread takes it for operations that nobody waits for, and leaves it to whoever waits. Thread-safe.
class Helm {
 public:
  using Task = std::function<void(transport::Endpoint&)>;

  explicit Helm(transport::Endpoint& endpoint) : endpoint_(endpoint) {}
  Helm(const Helm&) = delete;
  Helm& operator=(const Helm&) = delete;

  // The right to drive until the end of the scope, whatever happens, if nobody else has it.
  class Turn {
   public:
    explicit Turn(Helm& helm) : helm_(helm), taken_(!helm.driven_.exchange(true)) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
      if (taken_) helm_.leave();
    }

    explicit operator bool() const { return taken_; }

   private:
    Helm& helm_;
    bool taken_;
  };

  // Runs `task` while no other thread drives, here or on the thread that does, and returns when it has run.
  // Rethrows what it throws.
  void exclusively(const Task& task);

  // Sleeps until `ended` is true or nobody drives; in that case the caller then tries to take the helm. The
  // background thread stays away meanwhile.
  void sleep_until(const std::atomic<bool>& ended);

  // --- Only whoever drives.
  bool has_tasks() const { return has_tasks_.load(std::memory_order_relaxed); }
  // Runs what others have handed in.
  void run_tasks();
  // To be called after an operation's `ended` has become true (sequentially consistent, as are the count of
  // those who wait for it and their look at it: one of the two sees the other).
  void tell_ended() {
    if (waiters_.load() > 0) wake_all();
  }

  // --- The background thread. It is wanted while operations are counted here and nobody waits.
  // Whoever begins one takes the helm, or hands in a task, after that: then the thread is woken in time.
  void begin_in_background() { ++in_background_; }
  void end_in_background() { --in_background_; }
  bool wants_background() const { return in_background_.load() > 0 && waiters_.load() == 0; }
  // Sleeps until it is wanted and nobody drives, or until it is to stop and wake_all() was called after that.
  void sleep_until_wanted(const std::stop_token& stop);

  // Makes those who sleep look again at what they wait for.
  void wake_all();

 private:
  struct Entry {
    const Task* run = nullptr;
    bool done = false;
    std::exception_ptr error;
  };
  class Sleeper;

  void leave();

  transport::Endpoint& endpoint_;  // outlives this
  // Whoever turns this to true drives. The mutex is for those who find that somebody else does.
  std::atomic<bool> driven_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Entry*> tasks_;  // for whoever drives
  std::atomic<bool> has_tasks_{false};
  std::atomic<int> sleepers_{0};               // threads that `changed_` must wake
  std::atomic<int> waiters_{0};                // those of them that would drive for themselves
  std::atomic<std::size_t> in_background_{0};  // operations started so that have not ended
};

}  // namespace lockstep::comm
