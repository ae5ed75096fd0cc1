// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/logged_program.h"

#include <array>
#include <csignal>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <poll.h>

#include "lockstep/base/error.h"
#include "lockstep/cli/errors.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/rendezvous/signal_inbox.h"

namespace lockstep::cli {
namespace {

rendezvous::SpawnOptions spawn_options(const std::vector<std::string>& command, const std::string& log,
                                       const rendezvous::Environment& more) {
  rendezvous::SpawnOptions options = {.program = "/bin/sh",
                                      .arguments = {"/bin/sh", "-c", "exec \"$@\" >>\"$0\" 2>&1", log},
                                      .environment = rendezvous::process_environment()};
  options.arguments.insert(options.arguments.end(), command.begin(), command.end());
  for (const auto& [name, value] : more) options.environment[name] = value;
  ::sigemptyset(&options.signal_mask);
  return options;
}

std::string last_line_of(const std::string& file) {
  std::ifstream in(file);
  std::string last;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) last = std::move(line);
  }
  return last;
}

}  // namespace

LoggedProgram::LoggedProgram(const std::vector<std::string>& command, std::string log,
                             const rendezvous::Environment& more)
    : log_(std::move(log)), process_(spawn_options(command, log_, more)) {}

void LoggedProgram::kill() {
  ::kill(pid(), SIGKILL);
  pollfd end = {pid_fd(), POLLIN, 0};
  while (!poll()) ::poll(&end, 1, 1'000);
}

void LoggedProgram::require_success(std::string_view what) {
  const rendezvous::ExitStatus status = poll().value();
  if (status.ok()) return;
  throw WorkerFailed(status.shell_code(), fmt::format("{} {}: {} ({} has everything it said)", what,
                                                      status.to_string(), last_line_of(log_), log_));
}

void run_to_end(const std::vector<std::string>& command, const std::string& log, std::string_view what) {
  rendezvous::SignalInbox inbox({SIGINT, SIGTERM, SIGHUP});
  LoggedProgram program(command, log);
  while (!program.poll()) {
    std::array<pollfd, 2> entries = {{{program.pid_fd(), POLLIN, 0}, {inbox.fd(), POLLIN, 0}}};
    ::poll(entries.data(), entries.size(), -1);
    if (const int signal = inbox.take()) throw Interrupted(signal);
  }
  program.require_success(what);
}

}  // namespace lockstep::cli
