// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/types.h>

namespace lockstep::cli {

// A job that is disturbed while it trains. It ends with the object.
class Victim {
 public:
  virtual ~Victim() = default;

  virtual std::filesystem::path steps_file() const = 0;  // as records.h reads it
  virtual std::vector<pid_t> workers() const = 0;        // that run now
  virtual void resize() = 0;                             // a worker leaves, or comes back
  virtual void restart_launcher() = 0;

  // What becomes readable when the job ends.
  virtual pollfd end() const = 0;
  virtual bool has_ended() = 0;
};

// The children of a process that have not ended, by number.
std::vector<pid_t> children_of(pid_t parent);

}  // namespace lockstep::cli
