// SPDX-License-Identifier: Apache-2.0
//
// Supervises toy workers, in a process of its own that can be killed:
//   toy_supervisor WORKER WORKERS [name=number ...]
// The result is one line of standard output: "finished 0 reason", "stopped 75 reason".
#include <csignal>
#include <iostream>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/elastic/supervisor.h"

namespace lockstep::elastic {
namespace {

using std::chrono::milliseconds;

void set(SupervisorOptions& options, std::string_view name, int value) {
  if (name == "min_workers") options.min_workers = value;
  if (name == "grace_ms") options.workers.grace = milliseconds(value);
  if (name == "beat_timeout_ms") options.beat_timeout = milliseconds(value);
  if (name == "join_timeout_ms") options.join_timeout = milliseconds(value);
  if (name == "max_restarts") options.workers.restarts.max_restarts = static_cast<std::size_t>(value);
  if (name == "first_wait_ms") options.workers.restarts.first_wait = milliseconds(value);
  if (name == "restart_workers") options.workers.restart_workers = value != 0;
  if (name == "port") options.listen = transport::Address{"127.0.0.1", static_cast<std::uint16_t>(value), {}};
  if (name == "expected") options.expected = value;
  if (name == "last_step") options.last_step = value;
}

int main_of_supervisor(std::span<char*> arguments) {
  SupervisorOptions options;
  options.workers.command = {arguments[1]};
  options.workers.workers = std::stoi(arguments[2]);
  options.workers.environment = rendezvous::process_environment();
  options.workers.grace = milliseconds(2'000);
  options.log_path = options.workers.environment.at("TOY_FOLDER") + "/decisions";
  options.run = "toy";
  int agent_port = 0;
  for (const char* argument : arguments.subspan(3)) {
    const std::string_view text = argument;
    const std::size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    const int value = std::stoi(std::string(text.substr(equals + 1)));
    if (name == "agent_of_port") agent_port = value;
    set(options, name, value);
  }
  const SupervisorResult result =
      agent_port == 0 ? supervise(options)
                      : tend({.workers = options.workers,
                              .coordinator = {"127.0.0.1", static_cast<std::uint16_t>(agent_port), {}},
                              .run = options.run});
  std::cout << fmt::format("{} {} {}|{}", result.finished ? "finished" : "stopped", result.exit_code,
                           result.reason, result.first_failure)
            << std::endl;
  return result.exit_code;
}

}  // namespace
}  // namespace lockstep::elastic

int main(int count, char** arguments) {
  for (const int number : {SIGINT, SIGHUP}) std::signal(number, SIG_DFL);  // however the tests were started
  try {
    return lockstep::elastic::main_of_supervisor({arguments, static_cast<std::size_t>(count)});
  } catch (const lockstep::Error& error) {
    std::cerr << error.what() << std::endl;
    return 2;
  }
}
