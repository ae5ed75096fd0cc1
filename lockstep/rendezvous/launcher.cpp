// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/launcher.h"

#include <algorithm>
#include <list>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "lockstep/base/cpu.h"
#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/rendezvous/background.h"
#include "lockstep/rendezvous/host_id.h"
#include "lockstep/rendezvous/open_files.h"
#include "lockstep/rendezvous/server.h"
#include "lockstep/rendezvous/signal_inbox.h"
#include "lockstep/rendezvous/worker_environment.h"
#include "lockstep/rendezvous/worker_output.h"

namespace lockstep::rendezvous {
namespace {

using std::chrono::milliseconds;
using transport::Secret;

constexpr int kLostPeerCode = 75;

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
  Crew(const LaunchOptions& options, SignalInbox& inbox)
      : grace_(options.grace),
        grace_after_signal_(options.grace_after_signal.count() > 0 ? options.grace_after_signal
                                                                   : options.grace),
        inbox_(inbox) {}

  void start(Rank rank, const SpawnOptions& options) {
    Worker& worker = workers_.emplace_back(Worker{rank, ChildProcess(options)});
    ++result_.started;
    if (options.capture_output) output_.add(worker.process, fmt::format("[{}] ", rank));
  }

  // Ends the ranks when what they need, if anything, fails.
  LaunchResult wait(const Background* needed) {
    while (running() > 0) {
      wait_for_event(end_by_, ended_for_need_ ? nullptr : needed);
      forward_signals();
      relay_output();
      if (needed != nullptr && needed->failed() && !std::exchange(ended_for_need_, true)) end_now();
      reap();
      press_on();
    }
    output_.finish();
    drain_output();
    return result_;
  }

 private:
  void end_now() { end_by_ = Deadline::after(milliseconds(0)); }

  void relay_output() {
    output_.pump();
    if (output_.error() == 0 || result_.output_error != 0) return;
    result_.output_error = output_.error();
    end_now();  // nobody can see what the ranks have to say
  }

  // A slow reader gets all the time it wants, until somebody asks us to end.
  void drain_output() {
    relay_output();
    while (output_.pending()) {
      result_.output_dropped = drop_output_at_ && drop_output_at_->passed();
      if (result_.output_dropped) return;
      wait_for_event(drop_output_at_, nullptr);
      forward_signals();
      relay_output();
    }
  }

  std::size_t running() const {
    std::size_t count = 0;
    for (const Worker& worker : workers_) count += worker.process.running() ? 1 : 0;
    return count;
  }

  void wait_for_event(const std::optional<Deadline>& limit, const Background* needed) const {
    std::vector<pollfd> entries = {{inbox_.fd(), POLLIN, 0}};
    for (const Worker& worker : workers_) {
      if (worker.process.running()) entries.push_back({worker.process.pid_fd(), POLLIN, 0});
    }
    output_.add_to(entries);
    if (needed != nullptr) entries.push_back({needed->fd(), POLLIN, 0});
    int timeout_ms = -1;
    // A longer one is looked at again after an hour.
    if (limit) {
      const milliseconds left = std::chrono::ceil<milliseconds>(limit->left());
      timeout_ms = static_cast<int>(std::min<milliseconds>(left, std::chrono::hours(1)).count());
    }
    ::poll(entries.data(), entries.size(), timeout_ms);
  }

  void forward_signals() {
    while (const int number = inbox_.take()) {
      signal_all(number);
      const bool is_end = number == SIGINT || number == SIGTERM || number == SIGHUP;
      if (!is_end) continue;
      if (!result_.first_failure && result_.interrupted_by == 0) result_.interrupted_by = number;
      if (!end_by_) end_by_ = Deadline::after(grace_after_signal_);
      if (!drop_output_at_) drop_output_at_ = Deadline::after(grace_);
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
    if (failures.empty()) return;
    result_.all_succeeded = false;
    if (!terminated_) result_.failed += static_cast<int>(failures.size());
    // Who lost a peer may end before the peer itself has; whoever we have ended is no cause.
    const bool may_be_the_cause =
        !terminated_ && (!result_.first_failure || blame(result_.first_failure->status) == 0);
    if (may_be_the_cause) {
      result_.others_had_lost_a_peer = result_.first_failure.has_value();
      if (result_.first_failure) failures.insert(failures.begin(), *result_.first_failure);
      result_.first_failure = likeliest_cause(failures);
    }
    // After a signal the others end too, and have been given their time.
    if (!end_by_) end_by_ = Deadline::after(grace_);
  }

  // First patience, then SIGTERM, then SIGKILL.
  void press_on() {
    if (!end_by_ || !end_by_->passed()) return;
    if (!terminated_) result_.ended = static_cast<int>(running());
    signal_all(terminated_ ? SIGKILL : SIGTERM);
    terminated_ = true;
    end_by_ = Deadline::after(grace_);
  }

  milliseconds grace_;
  milliseconds grace_after_signal_;
  SignalInbox& inbox_;
  std::list<Worker> workers_;
  WorkerOutput output_;
  LaunchResult result_;
  std::optional<Deadline> end_by_;  // of the present stage of ending
  bool terminated_ = false;
  bool ended_for_need_ = false;
  std::optional<Deadline> drop_output_at_;
};

WorkerGroup group_of(const LaunchOptions& options, const Secret& secret) {
  WorkerGroup group{.world = options.workers,
                    .first_rank = 0,
                    .local_world = options.workers,
                    .node_rank = 0,
                    .master = {"127.0.0.1", 0, {}},
                    .run = fmt::format("launch-{}", ::getpid()),
                    .secret = secret,
                    .cores = usable_cores(),
                    .pretended_hosts = options.pretended_hosts};
  if (const auto& hosts = options.hosts) {
    group.world = hosts->world;
    group.first_rank = hosts->first_rank;
    group.node_rank = hosts->node_rank;
    group.master = hosts->master;
    group.run = hosts->run;
  }
  return group;
}

// Each worker is watched through a descriptor, and comes to the rendezvous with a connection.
void require_descriptors(const LaunchOptions& options, const WorkerGroup& group) {
  constexpr std::uint64_t kBesides = 15;
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
  return fmt::format("rank {} ({}, pid {}) {}", rank, host_name(), pid, status.to_string());
}

std::string LaunchResult::describe_failure() const {
  std::string text = first_failure->to_string();
  if (failed + ended > 1) {
    text += others_had_lost_a_peer ? "; others had ended before it, having lost a peer"
                                   : "; it was the first to fail";
  }
  if (ended > 0)
    text += ended == started - 1 ? ", and the others were ended" : ", and those that still ran were ended";
  return text;
}

LaunchResult launch(const LaunchOptions& options) {
  if (options.command.empty()) throw UsageError("no program to launch");
  SpawnOptions spawn{.program = find_program(options.command.front(), options.environment),
                     .arguments = options.command,
                     .environment = {},
                     .capture_output = options.prefix_output,
                     .signal_mask = {}};
  WorkerGroup group = group_of(options, secret_for_workers(!options.hosts));
  require_descriptors(options, group);

  SignalInbox inbox({SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2});
  spawn.signal_mask = inbox.mask_before();
  // Of the same signals those that end a run; they stay in the inbox.
  const SignalInbox ends({SIGINT, SIGTERM, SIGHUP});
  spawn.give_up_fd = ends.fd();
  spawn.give_up_after = options.grace;
  std::optional<Server> server;
  if (group.node_rank == 0) {
    require_secret(group.master, group.secret);
    server.emplace(ServerOptions{.listen = listening_address(group.master),
                                 .world = group.world,
                                 .run = group.run,
                                 .generation = 0,
                                 .secret = group.secret,
                                 .tls = transport::tls_from_environment(),
                                 .linger = milliseconds(500)});
    group.master.port = server->address().port;
  }

  Crew crew(options, inbox);
  for (int local_rank = 0; local_rank < group.local_world; ++local_rank) {
    spawn.environment = worker_environment(options.environment, group, local_rank);
    crew.start(group.first_rank + local_rank, spawn);
  }
  if (!server) return crew.wait(nullptr);
  // The ranks bring their own patience; the server has as much as any of them.
  const Background serving(
      [&](const std::stop_token& stop) { server->serve(Deadline::after(std::chrono::years(1)), stop); });
  LaunchResult result = crew.wait(&serving);
  if (result.first_failure && serving.failed()) serving.rethrow();
  return result;
}

}  // namespace lockstep::rendezvous
