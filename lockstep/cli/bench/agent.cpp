// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/agent.h"

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "lockstep/base/deadline.h"
#include "lockstep/base/error.h"
#include "lockstep/cli/bench/protocol.h"
#include "lockstep/cli/exit_codes.h"

namespace lockstep::cli {
namespace {

using Verb = Command::Verb;
using Trials = std::map<std::uint32_t, std::unique_ptr<Trial>>;

// Longer than a turn of all other systems together; a coordinator that dies ends the wait at once.
constexpr std::chrono::minutes kIdleLimit{10};
constexpr std::chrono::seconds kReplyLimit{10};

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

Trial& trial_of(const Trials& trials, std::uint32_t slot) {
  const auto found = trials.find(slot);
  if (found == trials.end()) throw DataError(fmt::format("slot {} was not prepared", slot));
  return *found->second;
}

std::unique_ptr<Trial> make_trial(const Systems& systems, const Case& what) {
  const auto found = systems.find(what.system);
  if (found == systems.end())
    throw UsageError(fmt::format("there is no system '{}' to measure", what.system));
  return found->second(what);
}

// Ranks enter one after another, so that an operation that does not wait for all of them shows.
Reply check(Trial& trial, Rank rank) {
  trial.fill();
  trial.meet();
  std::this_thread::sleep_for(std::chrono::milliseconds(rank % 8));
  Reply reply;
  reply.entered_ns = now_ns();
  trial.run_once();
  reply.left_ns = now_ns();
  reply.correct = trial.is_correct();
  trial.clear();
  trial.meet();
  return reply;
}

Reply run(Trial& trial, std::size_t iterations) {
  trial.run_once();  // what other systems pushed out of the caches comes back untimed
  trial.meet();
  const std::int64_t begin = now_ns();
  for (std::size_t i = 0; i < iterations; ++i) trial.run_once();
  return {.correct = false, .entered_ns = 0, .left_ns = 0, .elapsed_ns = now_ns() - begin};
}

Reply obey(const Command& command, Rank rank, const Systems& systems, Trials& trials) {
  switch (command.verb) {
    case Verb::prepare:
      trials[command.slot] = make_trial(systems, command.what);
      return {};
    case Verb::check:
      return check(trial_of(trials, command.slot), rank);
    case Verb::run:
      return run(trial_of(trials, command.slot), command.iterations);
    case Verb::release:
      trials.clear();
      return {};
    case Verb::quit:
      return {};
  }
  return {};
}

Failure failure_of(const std::exception_ptr& error) {
  using Kind = Failure::Kind;
  const Verdict verdict = verdict_on(error);
  const Kind kind = verdict.code == kBadUsage      ? Kind::usage
                    : verdict.code == kInterrupted ? Kind::comm
                                                   : Kind::internal;
  return {.kind = kind, .text = verdict.sentence};
}

void converse(LineSocket& coordinator, Rank rank, const Systems& systems) {
  coordinator.send(format_hello(rank), Deadline::after(kReplyLimit));
  Trials trials;
  for (;;) {
    const Command command = parse_command(coordinator.receive(Deadline::after(kIdleLimit)));
    if (command.verb == Verb::quit) return;
    std::optional<Failure> failure;
    Reply reply;
    try {
      reply = obey(command, rank, systems, trials);
    } catch (...) {
      failure = failure_of(std::current_exception());
    }
    coordinator.send(failure ? format_failure(*failure) : format_reply(reply), Deadline::after(kReplyLimit));
    if (failure && failure->kind != Failure::Kind::usage) return;
  }
}

}  // namespace

Systems systems_on(const comm::Communicator& communicator, const std::filesystem::path& gloo_store) {
  const TrialFactory links = link_trials(communicator);
  return {{"lockstep", lockstep_trials(communicator)},
          {"memcpy", memcpy_trials(communicator)},
          {"gloo", gloo_trials(communicator.rank(), communicator.size(), gloo_store)},
          {"sockets", socket_trials(communicator)},
          {"ping", links},
          {"stream", links},
          {"add", links}};
}

void serve_commands(LineSocket coordinator, Rank rank, const Systems& systems) {
  try {
    converse(coordinator, rank, systems);
  } catch (const PeerLost&) {
    // Only the coordinator can be meant, and whatever ended it is not ours to report.
  }
}

void report_failure(LineSocket coordinator, const std::exception_ptr& error) {
  try {
    coordinator.send(format_failure(failure_of(error)), Deadline::after(kReplyLimit));
    coordinator.receive(Deadline::after(kReplyLimit));
  } catch (const CommError&) {
    // It is gone, as it should be.
  }
}

}  // namespace lockstep::cli
