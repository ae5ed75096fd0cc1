// SPDX-License-Identifier: Apache-2.0
//
// Ranks as processes forked from the test, so that they can be killed and stopped.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "lockstep/comm/communicator.h"
#include "lockstep/comm/connect.h"

namespace lockstep::test {

class RankProcesses {
 public:
  // What a rank does; `tell` sends one line to the test. An exception ends the process with its message as a
  // last line.
  using Tell = std::function<void(const std::string&)>;
  using Body = std::function<void(comm::Communicator&, const Tell& tell)>;

  // Where a rank runs: called in its process before anything else, to enter a network namespace or to set
  // LOCKSTEP_HOST_ID, say.
  using Setup = std::function<void(Rank)>;

  // Forks `world` ranks that meet at `host` (an address of rank 0) and connect as told, then run the body.
  // The test must have no threads.
  RankProcesses(int world, const comm::ConnectOptions& options, const Body& body,
                const std::string& host = "127.0.0.1", const Setup& setup = {});
  // Kills what is left, and reaps it.
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  void signal(Rank rank, int number) const;

  // The next line of the rank; "(ended)" when it has ended, "(nothing)" when none comes in time.
  std::string next_line(Rank rank, std::chrono::milliseconds timeout = std::chrono::seconds(60));

  // Waits for the end; the status as waitpid gives it.
  int wait(Rank rank);

 private:
  struct Child {
    pid_t pid = -1;
    int lines = -1;  // read end
    std::string buffered;
    bool reaped = false;
  };
  std::vector<Child> children_;
};

}  // namespace lockstep::test
