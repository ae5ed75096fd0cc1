// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/rendezvous/process.h"

namespace lockstep::cli {

// A program as a child whose output and complaints go to a file, behind what is there. Destroying this kills
// it; what it has started itself must end with it.
class LoggedProgram {
 public:
  // argv, executed as it is; `more` is added to the environment of this process. UsageError when it cannot be
  // started.
  LoggedProgram(const std::vector<std::string>& command, std::string log,
                const rendezvous::Environment& more = {});

  pid_t pid() const { return process_.pid(); }
  int pid_fd() const { return process_.pid_fd(); }  // readable when it has ended
  const std::optional<rendezvous::ExitStatus>& poll() { return process_.poll(); }
  // SIGKILL for the program alone, and its end.
  void kill();

  // After its end. WorkerFailed, with its code and the last line that it has written, when it failed; `what`
  // names it.
  void require_success(std::string_view what);

 private:
  std::string log_;
  rendezvous::ChildProcess process_;
};

// Runs it and waits for its end. Interrupted when a signal asks this process to end; errors as above.
void run_to_end(const std::vector<std::string>& command, const std::string& log, std::string_view what);

}  // namespace lockstep::cli
