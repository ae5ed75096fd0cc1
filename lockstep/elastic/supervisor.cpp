// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/supervisor.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "lockstep/base/cpu.h"
#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/elastic/agent_link.h"
#include "lockstep/elastic/coordinator_server.h"
#include "lockstep/elastic/memory_kills.h"
#include "lockstep/elastic/worker_slots.h"
#include "lockstep/rendezvous/host_id.h"
#include "lockstep/rendezvous/open_files.h"
#include "lockstep/rendezvous/server.h"
#include "lockstep/rendezvous/signal_inbox.h"
#include "lockstep/rendezvous/worker_environment.h"

namespace lockstep::elastic {
namespace {

using std::chrono::milliseconds;

constexpr int kResumable = 75;
constexpr int kSignalBase = 128;
// Exit codes of workers that would make the same mistake again: bad usage, data, a bug, a folder in use, a
// file that cannot be written.
constexpr std::array kMistakes = {2, 65, 70, 73, 74};
// The same wish may come twice: to this process and to its group.
constexpr milliseconds kSameWish{500};

bool is_mistake(int exit_code) {
  return std::find(kMistakes.begin(), kMistakes.end(), exit_code) != kMistakes.end();
}

bool is_mistake(const rendezvous::ExitStatus& status) {
  return status.signal == 0 && is_mistake(status.code);
}

// Keeps the workers of this host as the control wants them, until the end.
class Supervision {
 public:
  Supervision(const WorkerOptions& options, Control& control, WorkerSlots& slots,
              rendezvous::SignalInbox& inbox)
      : options_(options), control_(control), slots_(slots), inbox_(inbox) {}

  SupervisorResult run() {
    while (!is_over()) {
      wait_for_event();
      forward_signals();
      relay_output();
      reap();  // before the control hears that connections have ended: this tells why
      control_.turn();
      for (const Fence& fence : control_.take_fences()) slots_.kill(fence.member, fence.reason);
      if (control_.end()) end_as_told();
      slots_.start_due();
      give_up_alone();
      press_on();
    }
    slots_.output().finish();
    drain_output();
    result_.has_begun = control_.has_begun();
    result_.finished = result_.exit_code == 0 && control_.end() && control_.end()->is_finished;
    if (came_too_late()) finish();
    return result_;
  }

 private:
  bool is_over() const { return is_ending() && slots_.running() == 0; }
  bool is_ending() const { return end_by_.has_value(); }

  // The wish to stop has found all workers with everything done.
  bool came_too_late() const {
    return is_stopping_ && result_.exit_code == kResumable && result_.output_error == 0 &&
           control_.has_all_steps() && any_done_ && !any_undone_;
  }

  void finish() {
    result_.finished = true;
    result_.exit_code = 0;
    result_.reason.clear();
  }

  void wait_for_event() {
    memory_kills_.look(Clock::now());
    std::vector<pollfd> entries = {{inbox_.fd(), POLLIN, 0}};
    slots_.add_to(entries);
    control_.add_to(entries);
    Clock::time_point until = memory_kills_.next_look();
    if (end_by_) until = std::min(until, end_by_->end());
    for (const auto& next : {slots_.next_start(), control_.next_deadline()}) {
      if (next) until = std::min(until, *next);
    }
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
    ::poll(entries.data(), entries.size(), static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
  }

  // --- The wishes of people

  void forward_signals() {
    while (const int number = inbox_.take()) {
      if (result_.interrupted_by == 0) {
        result_.interrupted_by = number;
        asked_at_ = Clock::now();
        // A second one would end them before they have saved.
        if (!has_terminated_) slots_.signal_all(number);
        control_.wind_up();
        if (!is_ending()) {
          is_stopping_ = true;
          begin_end(kResumable, fmt::format("stopped by signal {}", number), options_.grace_to_finish);
        }
      } else if (Clock::now() - asked_at_ > kSameWish) {
        result_.exit_code = kSignalBase + number;
        slots_.signal_all(SIGKILL);
      }
    }
  }

  void relay_output() {
    slots_.output().pump();
    if (slots_.output().error() == 0 || result_.output_error != 0) return;
    result_.output_error = slots_.output().error();
    end_now(kResumable, "nobody can see what the workers have to say");
  }

  // A slow reader gets all the time it wants, until somebody asks us to end.
  void drain_output() {
    relay_output();
    while (slots_.output().pending() &&
           (result_.interrupted_by == 0 || Clock::now() < asked_at_ + options_.grace)) {
      end_by_ = Deadline::after(options_.grace);
      wait_for_event();
      forward_signals();
      relay_output();
    }
  }

  // --- Workers that have ended

  void reap() {
    for (const WorkerSlots::Ended& ended : slots_.reap()) {
      const Control::Standing standing = control_.standing(ended.member);
      const std::string failure = describe(ended, standing);
      control_.lose(ended.member, failure);
      const bool has_done = standing.has_left.value_or(true) && ended.status.ok();
      if (is_ending()) (has_done ? any_done_ : any_undone_) = true;
      if (standing.has_left.value_or(ended.status.ok())) {
        note_departure(ended, failure);
      } else if (is_ending()) {
        note_end(ended, failure);
      } else {
        note_failure(ended, standing, failure);
      }
    }
  }

  std::string describe(const WorkerSlots::Ended& ended, const Control::Standing& standing) {
    const std::string who = fmt::format(
        "{} ({}, pid {})", standing.name.empty() ? fmt::format("worker {}", ended.slot) : standing.name,
        rendezvous::host_name(), ended.pid);
    const std::string phase = standing.phase.empty() ? "" : " " + standing.phase;
    if (ended.killed_for) return fmt::format("{} was ended{}: {}", who, phase, *ended.killed_for);
    return fmt::format("{} {}{}", who, end_of(ended), phase);
  }

  std::string end_of(const WorkerSlots::Ended& ended) {
    using Whose = MemoryKills::Whose;
    const Whose kill = ended.status.signal == SIGKILL ? memory_kills_.take(Clock::now()) : Whose::none;
    if (kill == Whose::none) return ended.status.to_string();
    return kill == Whose::group ? "was killed by the kernel for memory"
                                : "was probably killed by the kernel for memory";
  }

  // All workers that were asked to stop say so by the same code.
  void note_departure(const WorkerSlots::Ended& ended, const std::string& failure) {
    note_interruption(ended);
    // Whoever kills a worker that has done everything takes nothing from the run.
    if (ended.status.signal == SIGKILL) return log::warning(failure);
    const bool is_worse = is_mistake(ended.status) && !is_mistake(result_.exit_code);
    if (ended.status.ok() || (result_.exit_code != 0 && !is_worse)) return;
    result_.exit_code = ended.status.shell_code();
    result_.reason = failure;
    if (ended.status.code != kResumable) note_first(failure);
  }

  // While all are to end, only what is worse than that counts.
  void note_end(const WorkerSlots::Ended& ended, const std::string& failure) {
    const bool was_asked = has_terminated_ || ended.status.ok() || ended.status.code == kResumable;
    if (was_asked && !is_mistake(ended.status)) return;
    if (is_mistake(ended.status) && !is_mistake(result_.exit_code)) {
      result_.exit_code = ended.status.code;
      result_.reason = failure;
    }
    note_interruption(ended);
    note_first(failure);
  }

  // Without a checkpoint a worker that was interrupted says which signal it was.
  void note_interruption(const WorkerSlots::Ended& ended) {
    if (result_.interrupted_by == 0 || ended.status.code != kSignalBase + result_.interrupted_by) return;
    result_.exit_code = ended.status.code;
  }

  void note_failure(const WorkerSlots::Ended& ended, const Control::Standing& standing,
                    const std::string& failure) {
    note_first(failure);
    if (is_mistake(ended.status)) return end_now(ended.status.code, failure);
    const bool has_trained = standing.has_trained || ended.lived > options_.restarts.longest_wait;
    const auto wait = options_.restart_workers ? slots_.refill(ended.slot, has_trained) : std::nullopt;
    if (wait) {
      log::warning(fmt::format("{}; it starts again{} (restart {} of {})", failure,
                               wait->count() > 0 ? fmt::format(" in {} ms", wait->count()) : "",
                               slots_.restarts(ended.slot), options_.restarts.max_restarts));
    } else if (options_.restart_workers) {
      given_up_ = fmt::format("{}; it is given up after {} restarts within {} s", failure,
                              slots_.restarts(ended.slot), options_.restarts.window.count());
      log::warning(given_up_);
    } else {
      given_up_ = failure;
      log::warning(failure);
    }
  }

  void note_first(const std::string& failure) {
    if (result_.first_failure.empty()) result_.first_failure = failure;
  }

  // --- The end

  void begin_end(int exit_code, std::string reason, milliseconds time_to_end) {
    slots_.start_no_more();
    if (result_.exit_code == 0) {
      result_.exit_code = exit_code;
      result_.reason = std::move(reason);
    }
    if (!is_ending()) end_by_ = Deadline::after(time_to_end);
  }

  // Without the patience before SIGTERM: the others are to agree on a last step at once. That may take them
  // longer than one who has nothing to save needs to end.
  void end_now(int exit_code, const std::string& reason) {
    milliseconds time_to_end{0};
    if (!is_ending()) {
      time_to_end = control_.break_off(reason) ? options_.grace_to_finish : options_.grace;
      slots_.signal_all(SIGTERM);
      has_terminated_ = true;
    }
    begin_end(exit_code, reason, time_to_end);
  }

  void end_as_told() {
    const End& end = *control_.end();
    if (is_ending()) return;
    if (end.is_finished) return begin_end(0, "", options_.grace_to_finish);
    if (result_.exit_code == kResumable) result_.exit_code = 0;  // who has saved says so; this tells why
    begin_end(kResumable, given_up_.empty() ? end.reason : fmt::format("{}; {}", end.reason, given_up_),
              options_.grace);
  }

  // Nobody is left, and nobody will come. Where nobody was given up all have done their work, and the control
  // will say so.
  void give_up_alone() {
    if (is_ending() || slots_.running() > 0 || slots_.next_start() || control_.has_others()) return;
    if (!given_up_.empty()) end_now(kResumable, given_up_);
  }

  // First patience, then SIGTERM, then SIGKILL.
  void press_on() {
    if (!end_by_ || !end_by_->passed()) return;
    slots_.signal_all(has_terminated_ ? SIGKILL : SIGTERM);
    has_terminated_ = true;
    end_by_ = Deadline::after(options_.grace);
  }

  const WorkerOptions& options_;
  Control& control_;
  WorkerSlots& slots_;
  rendezvous::SignalInbox& inbox_;
  MemoryKills memory_kills_;
  SupervisorResult result_;
  std::string given_up_;  // the last worker that was
  Clock::time_point asked_at_{};
  std::optional<Deadline> end_by_;  // of the present stage of ending
  bool has_terminated_ = false;
  bool is_stopping_ = false;  // because of a signal
  // Of the workers that have ended since the end began.
  bool any_done_ = false;
  bool any_undone_ = false;
};

// What the workers of this host have in common.
rendezvous::WorkerGroup group_of(const WorkerOptions& options, const transport::Address& coordinator,
                                 const transport::Credentials& credentials) {
  return {.world = options.workers,
          .first_rank = 0,
          .local_world = options.workers,
          .node_rank = 0,
          .master = coordinator,
          .run = credentials.me.run,
          .secret = credentials.secret,
          .cores = usable_cores(),
          .pretended_hosts = options.pretended_hosts};
}

WorkerSlots::Options slots_for(const WorkerOptions& options, const rendezvous::WorkerGroup& group,
                               const sigset_t& signal_mask) {
  const std::string program = rendezvous::find_program(options.command.front(), options.environment);
  return {.slots = static_cast<std::size_t>(options.workers),
          .spawn =
              [&options, group, program, signal_mask](std::size_t slot, MemberId member) {
                rendezvous::Environment environment =
                    worker_environment(options.environment, group, static_cast<int>(slot));
                // Whatever the numbers of this host's workers look like, others may be elsewhere.
                environment["LOCKSTEP_MASTER_ADDR"] = group.master.host;
                environment["LOCKSTEP_COORDINATOR"] = group.master.to_string();
                environment["LOCKSTEP_MEMBER"] = std::to_string(member);
                return rendezvous::SpawnOptions{.program = program,
                                                .arguments = options.command,
                                                .environment = std::move(environment),
                                                .capture_output = options.prefix_output,
                                                .signal_mask = signal_mask};
              },
          .restarts = options.restarts};
}

SupervisorResult keep(const WorkerOptions& options, Control& control, const rendezvous::WorkerGroup& group,
                      rendezvous::SignalInbox& inbox) {
  WorkerSlots slots(slots_for(options, group, inbox.mask_before()));
  return Supervision(options, control, slots, inbox).run();
}

// Each worker is watched through a descriptor, and comes with a connection to the coordinator and to a
// meeting.
void check(const WorkerOptions& options, int members) {
  if (options.command.empty()) throw UsageError("no program to launch");
  constexpr std::uint64_t kBesides = 32;
  const auto workers = static_cast<std::uint64_t>(options.workers);
  rendezvous::require_open_files(
      fmt::format("keeping {} workers", workers),
      kBesides + 2 * static_cast<std::uint64_t>(members) + workers * (options.prefix_output ? 3 : 1));
}

constexpr std::initializer_list<int> kTakenSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

transport::Credentials credentials_for(std::string run, const transport::Secret& secret) {
  return {.me = {.role = "elastic", .rank = -1, .run = std::move(run), .generation = 0},
          .secret = secret,
          .tls = transport::tls_from_environment()};
}

CoordinatorOptions coordinator_of(const SupervisorOptions& options) {
  const int expected = options.expected > 0 ? options.expected : options.workers.workers;
  return {.expected = expected,
          .min_members = options.min_workers,
          .max_members = options.max_workers > 0 ? options.max_workers : expected,
          .multiple = options.multiple,
          .pipeline = options.pipeline,
          .beat_timeout = options.beat_timeout,
          .stall_timeout = options.stall_timeout,
          .wait_timeout = options.wait_timeout,
          .join_timeout = options.join_timeout,
          .can_save = options.can_save,
          .last_step = options.last_step,
          .host = rendezvous::placement_from_environment().host_id.value,
          .losses = {.per_member = options.workers.restarts.max_restarts,
                     .window = options.workers.restarts.window}};
}

}  // namespace

SupervisorResult supervise(const SupervisorOptions& options) {
  const CoordinatorOptions coordinator = coordinator_of(options);
  check(options.workers, coordinator.max_members);
  transport::Address address = options.listen.value_or(transport::Address{"127.0.0.1", 0, {}});
  const transport::Secret secret = rendezvous::secret_for_workers(!options.listen);
  rendezvous::require_secret(address, secret);
  const std::string run = options.run.empty() ? fmt::format("elastic-{}", ::getpid()) : options.run;

  rendezvous::SignalInbox inbox(kTakenSignals);
  CoordinatorServer server({.listen = rendezvous::listening_address(address),
                            .credentials = credentials_for(run, secret),
                            .coordinator = coordinator,
                            .log_path = options.log_path,
                            .history_path = options.history_path,
                            .brief = options.brief,
                            // Those of this host have died with their supervisor.
                            .awaits_members = options.listen.has_value(),
                            .goes_on = options.goes_on});
  address.port = server.address().port;
  return keep(options.workers, server, group_of(options.workers, address, credentials_for(run, secret)),
              inbox);
}

SupervisorResult tend(const AgentOptions& options) {
  check(options.workers, 0);
  const transport::Secret secret = transport::Secret::from_environment();
  rendezvous::require_secret(options.coordinator, secret);
  const transport::Credentials credentials = credentials_for(options.run, secret);

  rendezvous::SignalInbox inbox(kTakenSignals);
  const std::string address = options.coordinator.to_string();
  log::info(fmt::format("waiting for the run at {}, up to {} s", address,
                        options.reconnect_timeout.count() / 1000));
  AgentLink link({.coordinator = options.coordinator,
                  .credentials = credentials,
                  .reconnect_timeout = options.reconnect_timeout});
  WorkerOptions workers = options.workers;
  if (options.more_words) {
    const std::vector<std::string> more = options.more_words(link.brief());
    workers.command.insert(workers.command.end(), more.begin(), more.end());
  }
  log::info(fmt::format("found the run at {}, which tells of its steps there; workers of this host: {}",
                        address, workers.workers));
  SupervisorResult result = keep(workers, link, group_of(workers, options.coordinator, credentials), inbox);
  if (result.finished) log::info(fmt::format("the run at {} has ended", address));
  return result;
}

}  // namespace lockstep::elastic
