// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/chaos/disturb.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <optional>
#include <utility>

#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/base/unix_time.h"
#include "lockstep/cli/errors.h"
#include "lockstep/rendezvous/signal_inbox.h"

namespace lockstep::cli {
namespace {

constexpr std::chrono::minutes kPatience{10};
constexpr double kLook = 0.02;     // how often a file is looked at for a record, in seconds
constexpr double kLongLook = 1.0;  // and for whether the job goes on

class Disturbance {
 public:
  Disturbance(Victim& victim, std::span<const Fault> plan) : victim_(victim), left_(plan) {}

  std::vector<InjectedFault> run(double time_s) {
    while (!victim_.has_ended()) {
      require_progress();
      const double now = unix_time();
      if (!begin_) begin_ = begin_of_training();
      if (begin_ && now >= *begin_ + time_s) break;
      if (begin_) {
        continue_due(now);
        if (!left_.empty() && is_due(left_.front(), now) && inject(left_.front())) left_ = left_.subspan(1);
      }
      wait(time_s);
    }
    return std::move(injected_);
  }

 private:
  struct Stopped {
    pid_t pid = 0;
    double until = 0;
  };

  std::optional<double> begin_of_training() const {
    const auto first = first_step(victim_.steps_file());
    return first ? std::optional(first->time_s - first->step_s) : std::nullopt;
  }

  bool is_due(const Fault& fault, double now) const {
    if (now >= *begin_ + fault.at_s) return true;
    const auto last = fault.by_step > 0 ? last_step(victim_.steps_file()) : std::nullopt;
    return last && last->step >= fault.by_step;
  }

  // False: there is nobody to whom it can be done now.
  bool inject(const Fault& fault) {
    const std::vector<pid_t> workers = victim_.workers();
    if (workers.empty()) return false;
    const pid_t worker = workers[static_cast<std::size_t>(fault.worker) % workers.size()];
    const auto last = last_step(victim_.steps_file());
    const double now = unix_time();
    injected_.push_back(
        {.fault = fault, .time_s = now, .after_s = now - *begin_, .step = last ? last->step : 0});
    switch (fault.kind) {
      case FaultKind::kill:
        ::kill(worker, SIGKILL);
        break;
      case FaultKind::stop:
        ::kill(worker, SIGSTOP);
        if (fault.stopped_for_s > 0) stopped_.push_back({worker, unix_time() + fault.stopped_for_s});
        break;
      case FaultKind::resize:
        victim_.resize();
        break;
      case FaultKind::all:
        for (const pid_t one : workers) ::kill(one, SIGKILL);
        break;
      case FaultKind::launcher:
        victim_.restart_launcher();
        break;
    }
    return true;
  }

  // Those that have ended meanwhile are not among the workers any more, whoever has their numbers now.
  void continue_due(double now) {
    const auto is_due = [now](const Stopped& one) { return one.until <= now; };
    if (std::ranges::none_of(stopped_, is_due)) return;
    const std::vector<pid_t> workers = victim_.workers();
    for (const Stopped& one : stopped_) {
      if (is_due(one) && std::ranges::count(workers, one.pid) > 0) ::kill(one.pid, SIGCONT);
    }
    std::erase_if(stopped_, is_due);
  }

  void require_progress() {
    if (Clock::now() < next_look_) return;
    next_look_ = Clock::now() + std::chrono::seconds(1);
    const auto last = last_step(victim_.steps_file());
    if ((last ? last->step : 0) != seen_) {
      seen_ = last ? last->step : 0;
      patience_ = Deadline::after(kPatience);
    }
    if (patience_.passed()) throw CommError("the job has made no step for ten minutes");
  }

  void wait(double time_s) {
    double left = begin_ ? kLongLook : kLook;
    const auto until = [&](double time) { left = std::min(left, time - unix_time()); };
    if (begin_) until(*begin_ + time_s);
    if (begin_ && !left_.empty()) {
      until(std::max(*begin_ + left_.front().at_s, unix_time() + kLook / 10));
      if (left_.front().by_step > 0) left = std::min(left, kLook);
    }
    for (const Stopped& one : stopped_) until(one.until);
    std::array<pollfd, 2> entries = {{victim_.end(), {inbox_.fd(), POLLIN, 0}}};
    ::poll(entries.data(), entries.size(), static_cast<int>(std::max(0.0, left * 1e3)) + 1);
    if (const int signal = inbox_.take()) throw Interrupted(signal);
  }

  Victim& victim_;
  std::span<const Fault> left_;
  rendezvous::SignalInbox inbox_{SIGINT, SIGTERM, SIGHUP};
  std::optional<double> begin_;  // of training, in Unix time
  std::vector<InjectedFault> injected_;
  std::vector<Stopped> stopped_;
  std::int64_t seen_ = 0;
  Clock::time_point next_look_{};
  Deadline patience_ = Deadline::after(kPatience);
};

}  // namespace

std::vector<InjectedFault> disturb(Victim& victim, std::span<const Fault> plan, double time_s) {
  return Disturbance(victim, plan).run(time_s);
}

}  // namespace lockstep::cli
