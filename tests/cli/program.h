// SPDX-License-Identifier: Apache-2.0
//
// The built program as a child process of a test.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/rendezvous/process.h"

#include "tests/support/files.h"

namespace lockstep::testing {

using rendezvous::Environment;
using test::read_file;
using test::TemporaryFolder;

struct Finished {
  int exit_code = -1;  // 128 + signal when it was killed
  std::string output;
  std::string error_output;
};

// `lockstep ARGUMENTS...` with the environment of the test, but without what launchers left there, plus
// `extra`.
class Program {
 public:
  explicit Program(std::vector<std::string> arguments, const Environment& extra = {});

  pid_t pid() const { return process_.pid(); }
  void signal(int number) { process_.signal(number); }
  void kill_alone() const;  // SIGKILL to the process itself, not to its group

  // Waits for its end and its output; kills it and fails the test at the limit.
  Finished finish(std::chrono::seconds limit = std::chrono::seconds(60));

 private:
  friend Program start_shell(const std::string& script, const Environment& extra);
  explicit Program(const rendezvous::SpawnOptions& options) : process_(options) {}

  rendezvous::ChildProcess process_;
};

Finished run_program(std::vector<std::string> arguments, const Environment& extra = {});

// A shell script that finds the program as "$LOCKSTEP", in the same environment.
Program start_shell(const std::string& script, const Environment& extra = {});
Finished run_shell(const std::string& script, const Environment& extra = {});

// Waits until the process handles the signal itself, instead of being ended by it.
void wait_until_taken(pid_t process, int signal);

// A loopback port that nobody listened on a moment ago.
std::uint16_t free_port();

// Expects what bad input ends with: one sentence on standard error that has `sentence` in it, the documented
// code, and nothing on standard output.
void expect_refusal(const Finished& finished, int exit_code, const std::string& sentence);

// How often `text` has a newline.
std::size_t lines_in(const std::string& text);

}  // namespace lockstep::testing
