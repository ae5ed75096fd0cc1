// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/rendezvous/open_files.h"
#include "lockstep/rendezvous/text.h"
#include "lockstep/transport/connect/socket.h"

namespace lockstep::rendezvous {
namespace {

using transport::Descriptor;

struct Pipe {
  Descriptor read;
  Descriptor write;
};

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) cannot("make a pipe");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// Everything the child needs between fork and exec, prepared before, because only async-signal-safe calls are
// allowed there.
struct Prepared {
  const char* program = nullptr;
  std::vector<char*> arguments;
  std::vector<std::string> environment_texts;
  std::vector<char*> environment;
  const sigset_t* signal_mask = nullptr;
  pid_t parent = 0;
  int input = -1;
  int output = -1;
  int error_output = -1;
  int report = -1;  // errno of what failed goes here
};

Prepared prepare(const SpawnOptions& options) {
  Prepared result;
  result.program = options.program.c_str();
  for (const std::string& argument : options.arguments) {
    result.arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  result.arguments.push_back(nullptr);
  for (const auto& [name, value] : options.environment) {
    result.environment_texts.push_back(fmt::format("{}={}", name, value));
  }
  for (std::string& text : result.environment_texts) result.environment.push_back(text.data());
  result.environment.push_back(nullptr);
  result.signal_mask = &options.signal_mask;
  result.parent = ::getpid();
  return result;
}

[[noreturn]] void report_and_leave(const Prepared& prepared) {
  const int error = errno;
  [[maybe_unused]] const auto ignored = ::write(prepared.report, &error, sizeof(error));
  ::_exit(127);
}

[[noreturn]] void become_worker(const Prepared& prepared) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // If the parent died before the line above, nobody will send that signal any more.
  if (::getppid() != prepared.parent) ::_exit(127);
  ::setpgid(0, 0);
  // A handler is reset by exec, but an ignored signal would stay ignored.
  for (const int ignored : {SIGPIPE, SIGXFSZ}) ::signal(ignored, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, prepared.signal_mask, nullptr);
  if (::dup2(prepared.input, STDIN_FILENO) < 0) report_and_leave(prepared);
  if (prepared.output >= 0 && ::dup2(prepared.output, STDOUT_FILENO) < 0) report_and_leave(prepared);
  if (prepared.error_output >= 0 && ::dup2(prepared.error_output, STDERR_FILENO) < 0) {
    report_and_leave(prepared);
  }
  ::execve(prepared.program, prepared.arguments.data(), prepared.environment.data());
  report_and_leave(prepared);
}

// False when it is to be given up.
bool wait_for_report(const Descriptor& report, const SpawnOptions& options) {
  std::array<pollfd, 2> entries{pollfd{.fd = report.get(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = options.give_up_fd, .events = POLLIN, .revents = 0}};
  while (::poll(entries.data(), entries.size(), -1) < 0) {
  }
  const Deadline limit = Deadline::after(options.give_up_after);
  return entries[0].revents != 0 || transport::wait_ready(report.get(), transport::Readiness::read, limit);
}

// The pipe closes by itself when exec succeeds.
int read_report(const Descriptor& report) {
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(report.get(), &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof(error)) ? error : 0;
}

bool is_executable_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

[[noreturn]] void cannot_start(const std::string& name, std::string_view why) {
  throw UsageError(fmt::format("cannot start {}: {}", quote(name), why));
}

ExitStatus status_from(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return {.code = info.si_status, .signal = 0};
  return {.code = 0, .signal = info.si_status};
}

}  // namespace

std::string ExitStatus::to_string() const {
  if (signal == 0) return fmt::format("ended with exit code {}", code);
  return fmt::format("was killed by signal {} ({})", signal, ::strsignal(signal));
}

std::string find_program(const std::string& name, const Environment& environment) {
  if (name.empty()) cannot_start(name, "the name of the program is empty");
  if (name.find('/') != std::string::npos) {
    std::error_code ignored;
    if (!std::filesystem::exists(name, ignored)) cannot_start(name, "there is no such file");
    if (!is_executable_file(name)) cannot_start(name, "it is not an executable file");
    return name;
  }
  const auto path = environment.find("PATH");
  std::string_view rest = "/usr/local/bin:/usr/bin:/bin";
  if (path != environment.end()) rest = path->second;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    std::string candidate = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (is_executable_file(candidate)) return candidate;
  }
  cannot_start(name, "it is in no folder of PATH; write ./ before a program of this folder");
}

ChildProcess::ChildProcess(const SpawnOptions& options) {
  Prepared prepared = prepare(options);
  const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) cannot("open /dev/null");
  Pipe report = make_pipe();
  Pipe output = options.capture_output ? make_pipe() : Pipe{};
  Pipe error_output = options.capture_output ? make_pipe() : Pipe{};
  prepared.input = null.get();
  prepared.output = output.write.get();
  prepared.error_output = error_output.write.get();
  prepared.report = report.write.get();

  pid_ = ::fork();
  if (pid_ == 0) become_worker(prepared);
  if (pid_ < 0) {
    cannot_start(options.program, errno == EAGAIN ? "no more processes are allowed (ulimit -u, control group)"
                                                  : std::strerror(errno));
  }
  // Also here: whoever comes first, a signal to the group reaches the child.
  ::setpgid(pid_, pid_);
  pid_fd_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (!pid_fd_) {
    // Only through it is the end of the child seen.
    const int error = errno;
    end();
    errno = error;
    cannot("watch a process");
  }
  report.write = Descriptor();
  output_ = std::move(output.read);
  error_output_ = std::move(error_output.read);
  if (!wait_for_report(report.read, options)) {
    end();
    cannot_start(options.program, "it was given up before it ran: does the disk that holds it answer?");
  }
  if (const int error = read_report(report.read); error != 0) {
    ::waitpid(pid_, nullptr, 0);
    cannot_start(options.program, std::strerror(error));
  }
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pid_fd_(std::move(other.pid_fd_)),
      output_(std::move(other.output_)),
      error_output_(std::move(other.error_output_)),
      status_(other.status_) {}

ChildProcess::~ChildProcess() {
  if (pid_ >= 0 && !status_) end();
}

void ChildProcess::end() const {
  signal(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

const std::optional<ExitStatus>& ChildProcess::poll() {
  siginfo_t info{};
  if (!status_ && ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG) == 0 &&
      info.si_pid == pid_) {
    status_ = status_from(info);
  }
  return status_;
}

void ChildProcess::signal(int number) const {
  if (!status_) ::kill(-pid_, number);
}

}  // namespace lockstep::rendezvous
