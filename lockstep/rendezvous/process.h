// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "lockstep/rendezvous/environment.h"
#include "lockstep/transport/connect/connection.h"

namespace lockstep::rendezvous {

// How a process ended: by itself with a code, or by a signal.
struct ExitStatus {
  int code = 0;  // when signal is 0
  int signal = 0;

  bool ok() const { return code == 0 && signal == 0; }
  // As a shell reports it: the code, or 128 + signal.
  int shell_code() const { return signal == 0 ? code : 128 + signal; }
  // "ended with exit code 3", "was killed by signal 9 (Killed)".
  std::string to_string() const;
};

struct SpawnOptions {
  std::string program;                 // path of the file, as find_program() gives it
  std::vector<std::string> arguments;  // argv, the name of the program included
  Environment environment;
  bool capture_output = false;  // standard output and error through pipes instead of inherited
  sigset_t signal_mask{};       // of the new process
  // Once this is readable, a program that does not run (its disk may not answer) is waited for only so long;
  // -1: for ever.
  int give_up_fd = -1;
  std::chrono::milliseconds give_up_after{0};
};

// The file that execvp would run. UsageError when there is none or it is not executable.
std::string find_program(const std::string& name, const Environment& environment);

// A child in a process group of its own, with /dev/null as standard input, that the kernel kills when the
// thread that started it ends, however it ends. Destroying this kills the child and waits for it.
class ChildProcess {
 public:
  // UsageError when the program cannot be executed or watched, or was given up before it ran.
  explicit ChildProcess(const SpawnOptions& options);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  int pid_fd() const { return pid_fd_.get(); }  // readable when the child has ended
  bool running() const { return !status_.has_value(); }
  transport::Descriptor& output() { return output_; }
  transport::Descriptor& error_output() { return error_output_; }

  // How it ended; none while it runs.
  const std::optional<ExitStatus>& poll();

  // To its whole process group; nothing when it has ended.
  void signal(int number) const;

 private:
  void end() const;

  pid_t pid_ = -1;
  transport::Descriptor pid_fd_;
  transport::Descriptor output_;
  transport::Descriptor error_output_;
  std::optional<ExitStatus> status_;
};

}  // namespace lockstep::rendezvous
