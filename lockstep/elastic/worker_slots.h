// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/types.h>

#include "lockstep/base/deadline.h"
#include "lockstep/elastic/message.h"
#include "lockstep/elastic/restart_policy.h"
#include "lockstep/rendezvous/process.h"
#include "lockstep/rendezvous/worker_output.h"

namespace lockstep::elastic {

// The places for workers on this host, each with a process in it most of the time. Not thread-safe.
class WorkerSlots {
 public:
  struct Options {
    std::size_t slots = 1;
    // The process for a slot, with the member id it is to have.
    std::function<rendezvous::SpawnOptions(std::size_t slot, MemberId member)> spawn;
    RestartLimits restarts;
  };
  // Starts them all. UsageError as rendezvous::ChildProcess.
  explicit WorkerSlots(Options options);

  // A worker that has ended.
  struct Ended {
    std::size_t slot = 0;
    MemberId member = 0;
    pid_t pid = -1;
    std::chrono::nanoseconds lived{0};
    rendezvous::ExitStatus status;
    std::optional<std::string> killed_for;  // why this side did it
  };
  std::vector<Ended> reap();

  // After reap(): when the slot is filled again; none: it is given up, and stays empty.
  std::optional<std::chrono::milliseconds> refill(std::size_t slot, bool has_trained);
  std::size_t restarts(std::size_t slot) const;
  void start_due();
  // Forgets what was to be started.
  void start_no_more();

  void add_to(std::vector<pollfd>& entries) const;
  std::optional<Clock::time_point> next_start() const;
  std::size_t running() const;
  bool will_start() const { return next_start().has_value(); }

  void signal_all(int number) const;
  // By SIGKILL; nothing when the member is not here.
  void kill(MemberId member, const std::string& reason);

  rendezvous::WorkerOutput& output() { return output_; }

 private:
  struct Slot {
    explicit Slot(const RestartLimits& limits) : policy(limits) {}

    std::optional<rendezvous::ChildProcess> process;
    MemberId member = 0;
    Clock::time_point started{};
    std::optional<std::string> killed_for;
    std::optional<Clock::time_point> start_at;
    RestartPolicy policy;
  };
  void start(std::size_t index);

  Options options_;
  std::vector<Slot> slots_;
  rendezvous::WorkerOutput output_;
};

}  // namespace lockstep::elastic
