// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/launcher.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <list>
#include <string_view>
#include <thread>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "lockstep/base/cpu.h"
#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/rendezvous/line_prefix.h"
#include "lockstep/rendezvous/open_files.h"
#include "lockstep/rendezvous/server.h"
#include "lockstep/rendezvous/signal_inbox.h"
#include "lockstep/rendezvous/worker_environment.h"

namespace lockstep::rendezvous {
namespace {

using std::chrono::milliseconds;
using transport::Descriptor;
using transport::Secret;

constexpr int kLostPeerCode = 75;

// The errno of what failed; 0: all is written.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(fd, text.data(), text.size());
    if (put < 0 && errno == EAGAIN) {
      pollfd entry{fd, POLLOUT, 0};
      ::poll(&entry, 1, -1);
    } else if (put < 0 && errno != EINTR) {
      return errno;
    } else if (put > 0) {
      text.remove_prefix(static_cast<std::size_t>(put));
    }
  }
  return 0;
}

// One captured stream of a worker, on its way to ours.
struct Relay {
  Descriptor from;
  int to = -1;
  LinePrefix lines;
  int error = 0;  // why our stream took no more; what comes after that is dropped

  // Moves what is there without waiting; false at the end of the stream. Returns now and then although there
  // is more: a worker that never stops writing must not keep us from anything else.
  bool pump() {
    constexpr int kMostReads = 16;
    std::array<char, 16'384> buffer;
    for (int i = 0; i < kMostReads; ++i) {
      pollfd entry{from.get(), POLLIN, 0};
      if (::poll(&entry, 1, 0) <= 0) return true;
      const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
      if (got <= 0) return got < 0 && errno == EINTR;
      put(lines.feed({buffer.data(), static_cast<std::size_t>(got)}));
    }
    return true;
  }

  void finish() { put(lines.finish()); }

 private:
  void put(std::string_view text) {
    if (error == 0) error = write_all(to, text);
  }
};

struct Worker {
  Rank rank = -1;
  ChildProcess process;
};

int blame(const ExitStatus& status) {
  if (status.signal != 0) return 2;
  return status.code == kLostPeerCode ? 0 : 1;
}

class Crew {
 public:
  Crew(milliseconds grace, SignalInbox& inbox) : grace_(grace), inbox_(inbox) {}

  void start(Rank rank, const SpawnOptions& options) {
    Worker& worker = workers_.emplace_back(Worker{rank, ChildProcess(options)});
    const std::string prefix = fmt::format("[{}] ", rank);
    if (!options.capture_output) return;
    relays_.push_back({std::move(worker.process.output()), STDOUT_FILENO, LinePrefix(prefix)});
    relays_.push_back({std::move(worker.process.error_output()), STDERR_FILENO, LinePrefix(prefix)});
  }

  LaunchResult wait() {
    while (running() > 0) {
      wait_for_event();
      forward_signals();
      relays_.remove_if([this](Relay& relay) { return finished(relay, false); });
      reap();
      press_on();
    }
    // Whoever still holds the other end is not one of ours.
    relays_.remove_if([this](Relay& relay) { return finished(relay, true); });
    return result_;
  }

 private:
  bool finished(Relay& relay, bool last) {
    const bool open = relay.pump();
    if (!open || last) relay.finish();
    if (relay.error != 0 && result_.output_error == 0) {
      result_.output_error = relay.error;
      end_by_ = Deadline::after(milliseconds(0));  // nobody can see what the ranks have to say
    }
    return !open || last;
  }

  std::size_t running() const {
    std::size_t count = 0;
    for (const Worker& worker : workers_) count += worker.process.running() ? 1 : 0;
    return count;
  }

  void wait_for_event() {
    std::vector<pollfd> entries = {{inbox_.fd(), POLLIN, 0}};
    for (const Worker& worker : workers_) {
      if (worker.process.running()) entries.push_back({worker.process.pid_fd(), POLLIN, 0});
    }
    for (const Relay& relay : relays_) entries.push_back({relay.from.get(), POLLIN, 0});
    int timeout_ms = -1;
    if (end_by_) timeout_ms = static_cast<int>(std::chrono::ceil<milliseconds>(end_by_->left()).count());
    ::poll(entries.data(), entries.size(), timeout_ms);
  }

  void forward_signals() {
    while (const int number = inbox_.take()) {
      signal_all(number);
      const bool is_end = number == SIGINT || number == SIGTERM || number == SIGHUP;
      if (!is_end) continue;
      if (!result_.first_failure && result_.interrupted_by == 0) result_.interrupted_by = number;
      if (!end_by_) end_by_ = Deadline::after(grace_);
    }
  }

  void signal_all(int number) const {
    for (const Worker& worker : workers_) worker.process.signal(number);
  }

  void reap() {
    std::vector<LaunchResult::Failure> failures;
    for (Worker& worker : workers_) {
      if (!worker.process.running() || !worker.process.poll()) continue;
      const ExitStatus status = *worker.process.poll();
      if (!status.ok()) failures.push_back({worker.rank, worker.process.pid(), status});
    }
    if (!result_.first_failure && !failures.empty()) result_.first_failure = likeliest_cause(failures);
    if (result_.first_failure && !end_by_) end_by_ = Deadline::after(grace_);
  }

  // First patience, then SIGTERM, then SIGKILL.
  void press_on() {
    if (!end_by_ || !end_by_->passed()) return;
    signal_all(terminated_ ? SIGKILL : SIGTERM);
    terminated_ = true;
    end_by_ = Deadline::after(grace_);
  }

  milliseconds grace_;
  SignalInbox& inbox_;
  std::list<Worker> workers_;
  std::list<Relay> relays_;
  LaunchResult result_;
  std::optional<Deadline> end_by_;  // of the present stage of ending
  bool terminated_ = false;
};

WorkerGroup group_of(const LaunchOptions& options, const Secret& secret) {
  WorkerGroup group{.world = options.workers,
                    .first_rank = 0,
                    .local_world = options.workers,
                    .node_rank = 0,
                    .master = {"127.0.0.1", 0, {}},
                    .run = fmt::format("launch-{}", ::getpid()),
                    .secret = secret,
                    .cores = usable_cores()};
  if (const auto& hosts = options.hosts) {
    group.world = hosts->world;
    group.first_rank = hosts->first_rank;
    group.node_rank = hosts->node_rank;
    group.master = hosts->master;
    group.run = hosts->run;
  }
  return group;
}

Secret find_or_make_secret(bool one_host) {
  Secret secret = Secret::from_environment();
  // Between hosts a secret made here would be unknown to the other launchers.
  return secret.empty() && one_host ? Secret::generate() : secret;
}

// The listener would refuse too, but cannot know of keygen.
void expect_secret(const WorkerGroup& group) {
  if (!group.secret.empty() || is_loopback(group.master) || transport::tls_from_environment()) return;
  throw UsageError(
      fmt::format("ranks will not meet at {} without a secret: make one with `lockstep keygen FILE`, copy "
                  "it to all hosts and set LOCKSTEP_SECRET_FILE",
                  group.master.to_string()));
}

// Each worker is watched through a descriptor, and comes to the rendezvous with a connection.
void require_descriptors(const LaunchOptions& options, const WorkerGroup& group) {
  constexpr std::uint64_t kBesides = 12;
  const auto workers = static_cast<std::uint64_t>(group.local_world);
  const auto guests = static_cast<std::uint64_t>(group.node_rank == 0 ? group.world : 0);
  require_open_files(fmt::format("launching {} ranks", group.local_world),
                     kBesides + guests + workers * (options.prefix_output ? 3 : 1));
}

}  // namespace

const LaunchResult::Failure& likeliest_cause(std::span<const LaunchResult::Failure> failures) {
  return *std::max_element(failures.begin(), failures.end(),
                           [](const auto& a, const auto& b) { return blame(a.status) < blame(b.status); });
}

std::string LaunchResult::Failure::to_string() const {
  return fmt::format("rank {} (pid {}) {}", rank, pid, status.to_string());
}

LaunchResult launch(const LaunchOptions& options) {
  if (options.command.empty()) throw UsageError("no program to launch");
  SpawnOptions spawn{.program = find_program(options.command.front(), options.environment),
                     .arguments = options.command,
                     .environment = {},
                     .capture_output = options.prefix_output,
                     .signal_mask = {}};
  WorkerGroup group = group_of(options, find_or_make_secret(!options.hosts));
  require_descriptors(options, group);

  SignalInbox inbox({SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2});
  spawn.signal_mask = inbox.mask_before();
  std::optional<Server> server;
  if (group.node_rank == 0) {
    expect_secret(group);
    server.emplace(ServerOptions{.listen = listening_address(group.master),
                                 .world = group.world,
                                 .run = group.run,
                                 .generation = 0,
                                 .secret = group.secret,
                                 .tls = transport::tls_from_environment(),
                                 .linger = milliseconds(500)});
    group.master.port = server->address().port;
  }

  Crew crew(options.grace, inbox);
  for (int local_rank = 0; local_rank < group.local_world; ++local_rank) {
    spawn.environment = worker_environment(options.environment, group, local_rank);
    crew.start(group.first_rank + local_rank, spawn);
  }
  std::jthread serving;
  if (server) {
    // The ranks bring their own patience; the server has as much as any of them.
    serving = std::jthread(
        [&](const std::stop_token& stop) { server->serve(Deadline::after(std::chrono::years(1)), stop); });
  }
  return crew.wait();
}

}  // namespace lockstep::rendezvous
