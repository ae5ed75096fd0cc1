// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep::elastic::simulation {

// What goes wrong in a run; each is counted when it bites.
enum class Fault {
  crash,      // a process ends
  host_loss,  // and nobody is told
  pause,      // a process stops, and goes on later
  hang,       // a worker beats and does nothing else
  slow_process,
  newcomer,
  partition,
  one_way_partition,
  drop,       // of a message, and with it of its connection
  duplicate,  // of a message
  reorder,    // a message arrives before one that was sent earlier between the same two processes
  slow_disk,
  full_disk,    // a write is refused
  disk_error,   // an operation fails, and the next one does not
  torn_work,    // a process ends between two operations on a disk
  lost_writes,  // a disk loses something that was not synced
  bit_flip,
};

inline constexpr std::array kFaultNames = {"crashes",
                                           "lost hosts",
                                           "pauses",
                                           "hangs",
                                           "slow processes",
                                           "newcomers",
                                           "partitions",
                                           "one-way partitions",
                                           "dropped messages",
                                           "duplicates",
                                           "reorderings",
                                           "slow disks",
                                           "writes on full disks",
                                           "disk errors",
                                           "torn work",
                                           "losses of unsynced writes",
                                           "bit flips"};

class Tally {
 public:
  void add(Fault fault) { ++counts_[static_cast<std::size_t>(fault)]; }
  Tally& operator+=(const Tally& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    return *this;
  }
  // By the numbers of Fault.
  const std::array<std::int64_t, kFaultNames.size()>& counts() const { return counts_; }

 private:
  std::array<std::int64_t, kFaultNames.size()> counts_ = {};
};

}  // namespace lockstep::elastic::simulation
