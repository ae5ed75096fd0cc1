// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>

#include "lockstep/transport/connect/connection.h"

namespace lockstep::cli {

// Lets a command that works alone end with a sentence when SIGINT, SIGTERM or SIGHUP comes: it asks now and
// then, and where it cannot for a while, in a system call or a library, the process is ended all the same.
// Signals that are ignored stay ignored. At most one at a time.
class Interruption {
 public:
  // What is to be said beside the signal, such as "nothing was written; the same command begins anew".
  // UsageError when there are no descriptors left.
  explicit Interruption(std::string what_remains);
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption();

  // From now on. These from any thread.
  void set_what_remains(std::string what_remains);
  bool has_come() const { return signal_ != 0; }
  // Interrupted when it has.
  void check() const;

 private:
  void watch();
  std::string what_remains() const;

  mutable std::mutex mutex_;
  std::string what_remains_;  // under it
  std::atomic<int> signal_ = 0;
  transport::Descriptor signals_;  // a byte for each that comes; 0 when the command has ended
  transport::Descriptor to_watcher_;
  std::jthread watcher_;
};

}  // namespace lockstep::cli
