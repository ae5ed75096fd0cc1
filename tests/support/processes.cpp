// SPDX-License-Identifier: Apache-2.0
#include "tests/support/processes.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <optional>
#include <thread>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/rendezvous/host_id.h"
#include "lockstep/rendezvous/placement.h"
#include "lockstep/rendezvous/server.h"

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;

using Pipe = std::array<int, 2>;

Pipe make_pipe() {
  Pipe ends{};
  LOCKSTEP_CHECK(pipe(ends.data()) == 0);
  return ends;
}

void write_all(int fd, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = write(fd, text.data() + done, text.size() - done);
    if (count <= 0) return;  // the test has gone; so will we
    done += static_cast<std::size_t>(count);
  }
}

rendezvous::Placement place(Rank rank, int world, const std::string& host, std::uint16_t port) {
  rendezvous::Placement placement;
  placement.rank.value = rank;
  placement.world.value = world;
  placement.master_host.value = host;
  placement.master_port.value = port;
  placement.served_by_rank0.value = false;
  placement.run.value = "processes";
  const char* host_id = std::getenv("LOCKSTEP_HOST_ID");
  placement.host_id.value = host_id != nullptr ? host_id : rendezvous::detect_host_id();
  placement.timeout.value = 60s;
  return placement;
}

// Rank 0 serves the meeting on a free port and hands the port to the others through the pipe.
class Meeting {
 public:
  Meeting(Rank rank, int world, const std::string& host, const Pipe& ports) {
    if (rank == 0) {
      rendezvous::ServerOptions options;
      options.listen.host = host;
      options.world = world;
      options.run = "processes";
      options.secret = transport::Secret::from_environment();
      server_.emplace(std::move(options));
      port_ = server_->address().port;
      thread_ =
          std::jthread([this](const std::stop_token& stop) { server_->serve(Deadline::after(60s), stop); });
      for (int i = 1; i < world; ++i) LOCKSTEP_CHECK(write(ports[1], &port_, sizeof port_) == sizeof port_);
    } else {
      LOCKSTEP_CHECK(read(ports[0], &port_, sizeof port_) == sizeof port_);
    }
  }
  std::uint16_t port() const { return port_; }

 private:
  std::optional<rendezvous::Server> server_;
  std::uint16_t port_ = 0;
  std::jthread thread_;
};

struct RankTask {
  Rank rank;
  int world;
  const comm::ConnectOptions& options;
  const RankProcesses::Body& body;
  const std::string& host;
  const RankProcesses::Setup& setup;
};

[[noreturn]] void run_rank(const RankTask& task, const Pipe& ports, int lines) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const RankProcesses::Tell tell = [lines](const std::string& line) { write_all(lines, line + "\n"); };
  int code = 0;
  try {
    if (task.setup) task.setup(task.rank);
    const Meeting meeting(task.rank, task.world, task.host, ports);
    comm::Communicator communicator =
        comm::connect(place(task.rank, task.world, task.host, meeting.port()), task.options);
    task.body(communicator, tell);
  } catch (const std::exception& error) {
    tell(error.what());
    code = 1;
  }
  std::_Exit(code);
}

}  // namespace

RankProcesses::RankProcesses(int world, const comm::ConnectOptions& options, const Body& body,
                             const std::string& host, const Setup& setup)
    : children_(static_cast<std::size_t>(world)) {
  const Pipe ports = make_pipe();
  for (Rank rank = 0; rank < world; ++rank) {
    const Pipe lines = make_pipe();
    const pid_t pid = fork();
    LOCKSTEP_CHECK(pid >= 0);
    if (pid == 0) {
      close(lines[0]);
      run_rank({rank, world, options, body, host, setup}, ports, lines[1]);
    }
    close(lines[1]);
    children_[rank].pid = pid;
    children_[rank].lines = lines[0];
  }
  close(ports[0]);
  close(ports[1]);
}

RankProcesses::~RankProcesses() {
  for (Rank rank = 0; rank < static_cast<int>(children_.size()); ++rank) {
    if (!children_[rank].reaped) {
      signal(rank, SIGKILL);
      wait(rank);
    }
    close(children_[rank].lines);
  }
}

void RankProcesses::signal(Rank rank, int number) const {
  kill(children_[rank].pid, number);
}

std::string RankProcesses::next_line(Rank rank, std::chrono::milliseconds timeout) {
  Child& child = children_[rank];
  const Deadline deadline = Deadline::after(timeout);
  while (true) {
    const std::size_t end = child.buffered.find('\n');
    if (end != std::string::npos) {
      const std::string line = child.buffered.substr(0, end);
      child.buffered.erase(0, end + 1);
      return line;
    }
    pollfd descriptor{.fd = child.lines, .events = POLLIN, .revents = 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.left()).count();
    if (poll(&descriptor, 1, static_cast<int>(left)) <= 0) return "(nothing)";
    std::array<char, 4096> chunk{};
    const ssize_t count = read(child.lines, chunk.data(), chunk.size());
    if (count <= 0) return "(ended)";
    child.buffered.append(chunk.data(), static_cast<std::size_t>(count));
  }
}

int RankProcesses::wait(Rank rank) {
  int status = 0;
  waitpid(children_[rank].pid, &status, 0);
  children_[rank].reaped = true;
  return status;
}

}  // namespace lockstep::test
