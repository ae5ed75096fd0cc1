// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/program.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "lockstep/base/deadline.h"
#include "lockstep/transport/connect/listener.h"

#include "tests/support/files.h"

namespace lockstep::testing {
namespace {

bool is_about_ranks(const std::string& name) {
  for (const char* prefix :
       {"LOCKSTEP_", "SLURM_", "OMPI_", "PMI", "MPI_", "TORCHELASTIC_", "MASTER_", "LOCAL_"}) {
    if (name.starts_with(prefix)) return true;
  }
  return name == "RANK" || name == "WORLD_SIZE" || name == "GROUP_RANK" || name == "OMP_NUM_THREADS";
}

rendezvous::SpawnOptions spawn_options(std::vector<std::string> arguments, const Environment& extra) {
  rendezvous::SpawnOptions options;
  options.program = LOCKSTEP_PROGRAM;
  options.arguments = std::move(arguments);
  options.arguments.insert(options.arguments.begin(), "lockstep");
  options.environment = rendezvous::process_environment();
  std::erase_if(options.environment, [](const auto& entry) { return is_about_ranks(entry.first); });
  for (const auto& [name, value] : extra) options.environment[name] = value;
  options.capture_output = true;
  sigemptyset(&options.signal_mask);
  for (const int number : {SIGINT, SIGHUP}) std::signal(number, SIG_DFL);  // however the tests were started
  return options;
}

// Appends what can be read; false at the end.
bool read_some(int fd, std::string& into) {
  std::array<char, 4096> buffer;
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  if (got > 0) into.append(buffer.data(), static_cast<std::size_t>(got));
  return got > 0;
}

}  // namespace

Program::Program(std::vector<std::string> arguments, const Environment& extra)
    : process_(spawn_options(std::move(arguments), extra)) {}

void Program::kill_alone() const {
  ::kill(process_.pid(), SIGKILL);
}

Finished Program::finish(std::chrono::seconds limit) {
  Finished result;
  const Deadline deadline = Deadline::after(limit);
  std::array<pollfd, 2> streams = {pollfd{process_.output().get(), POLLIN, 0},
                                   pollfd{process_.error_output().get(), POLLIN, 0}};
  const std::array<std::string*, 2> texts = {&result.output, &result.error_output};
  // Until the program has ended and nothing more is in the pipes.
  while (true) {
    const bool ended = process_.poll().has_value();
    const int ready = ::poll(streams.data(), streams.size(), ended ? 0 : 20);
    if (ready <= 0 && ended) break;
    for (std::size_t i = 0; i < streams.size() && ready > 0; ++i) {
      if (streams[i].revents != 0 && !read_some(streams[i].fd, *texts[i])) streams[i].fd = -1;
    }
    if (deadline.passed()) {
      ADD_FAILURE() << "the program still runs after " << limit.count()
                    << " s; so far it said: " << result.output << result.error_output;
      process_.signal(SIGKILL);
      break;
    }
  }
  if (process_.poll()) result.exit_code = process_.poll()->shell_code();
  return result;
}

Finished run_program(std::vector<std::string> arguments, const Environment& extra) {
  return Program(std::move(arguments), extra).finish();
}

Program start_shell(const std::string& script, const Environment& extra) {
  rendezvous::SpawnOptions options = spawn_options({}, extra);
  options.program = "/bin/sh";
  options.arguments = {"sh", "-c", script};
  options.environment["LOCKSTEP"] = LOCKSTEP_PROGRAM;
  return Program(options);
}

Finished run_shell(const std::string& script, const Environment& extra) {
  return start_shell(script, extra).finish();
}

void wait_until_taken(pid_t process, int signal) {
  const std::string path = "/proc/" + std::to_string(process) + "/status";
  const auto is_taken = [&] {
    const std::string status = read_file(path);
    const std::size_t place = status.find("SigCgt:");
    if (place == std::string::npos) return false;
    return (std::stoull(status.substr(place + 7), nullptr, 16) >> (signal - 1) & 1) == 1;
  };
  for (int i = 0; i < 3000 && !is_taken(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(is_taken());
}

std::uint16_t free_port() {
  return transport::Listener({"127.0.0.1", 0, {}},
                             {.me = {"test", -1, "test", 0}, .secret = {}, .tls = nullptr})
      .address()
      .port;
}

void expect_refusal(const Finished& finished, int exit_code, const std::string& sentence) {
  EXPECT_EQ(finished.exit_code, exit_code);
  EXPECT_THAT(finished.error_output, ::testing::StartsWith("lockstep: "));
  EXPECT_THAT(finished.error_output, ::testing::HasSubstr(sentence));
  EXPECT_EQ(lines_in(finished.error_output), 1u) << finished.error_output;
  EXPECT_EQ(finished.output, "");
}

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace lockstep::testing
