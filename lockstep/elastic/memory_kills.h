// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "lockstep/base/deadline.h"

namespace lockstep::elastic {

// Whether the kernel has just killed a process because memory ran out. It counts such kills, in our control
// group and on the whole machine, and does not say whom: only those of the last moment tell something about a
// process that was killed in that moment.
class MemoryKills {
 public:
  // Of our group, and of anybody on this machine.
  enum class Whose { none, group, machine };

  // Other places than those of the system are for tests.
  explicit MemoryKills(const std::filesystem::path& proc = "/proc",
                       const std::filesystem::path& groups = "/sys/fs/cgroup");

  // Counts. Call it at next_look(); more often costs nothing.
  void look(Clock::time_point now);
  Clock::time_point next_look() const { return next_look_; }

  // A process was killed: a kill that may have been its own, which is nobody else's then.
  Whose take(Clock::time_point now);

 private:
  struct Count {
    std::uint64_t seen = 0;
    std::uint64_t recent = 0;  // not taken yet
    Clock::time_point moved{};

    void see(std::uint64_t count, Clock::time_point now);
    bool take();
  };
  void count(Clock::time_point now);

  std::filesystem::path machine_file_;
  std::filesystem::path group_file_;  // empty: there is none
  Count machine_;
  Count group_;
  Clock::time_point next_look_;
};

}  // namespace lockstep::elastic
