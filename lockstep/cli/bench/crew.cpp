// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/crew.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::cli {
namespace {

// A turn takes a fraction of a second; a rank that hangs is reported sooner by its own peers.
constexpr std::chrono::seconds kCommandLimit{120};
constexpr std::chrono::seconds kHelloLimit{10};
constexpr std::chrono::milliseconds kLookEvery{100};

[[noreturn]] void raise(const Failure& failure, const std::string& who) {
  switch (failure.kind) {
    case Failure::Kind::usage:
      throw UsageError(failure.text);
    case Failure::Kind::comm:
      throw CommError(fmt::format("{}: {}", who, failure.text));
    case Failure::Kind::internal:
      break;
  }
  throw InternalError(fmt::format("{}: {}", who, failure.text));
}

}  // namespace

Crew::Crew(int ranks, std::string name, rendezvous::SignalInbox& signals)
    : ranks_(ranks), name_(std::move(name)), signals_(signals) {
  listener_.emplace();
}

std::filesystem::path Crew::address() const {
  return listener_->address();
}

std::vector<Reply> Crew::command(const Command& command) {
  const Deadline deadline = Deadline::after(kCommandLimit);
  const std::string line = format_command(command);
  for (auto& agent : agents_) agent->send(line, deadline);
  std::vector<Reply> replies;
  const LineSocket* first_failed = nullptr;
  Failure first_failure;
  for (auto& agent : agents_) {
    std::optional<Failure> failure;
    replies.push_back(parse_reply(agent->receive(deadline), failure));
    if (!failure) continue;
    if (first_failed == nullptr) {
      first_failed = &*agent;
      first_failure = *failure;
    }
    // Who refuses a command waits for the next one, and so must the others' replies to this one be taken. Who
    // fails otherwise has ended, and no command follows.
    if (failure->kind != Failure::Kind::usage) break;
  }
  if (first_failed != nullptr) raise(first_failure, first_failed->peer());
  return replies;
}

void Crew::gather(const std::function<void()>& look, Deadline deadline) {
  agents_.clear();
  agents_.resize(static_cast<std::size_t>(ranks_));
  try {
    receive_all(look, deadline);
  } catch (...) {
    // Those that derive from this wait for their agents, and these for us.
    dismiss();
    throw;
  }
  listener_.reset();
}

void Crew::receive_all(const std::function<void()>& look, Deadline deadline) {
  for (int missing = ranks_; missing > 0;) {
    std::optional<LineSocket> caller = listener_->accept(Deadline::after(kLookEvery), signals_);
    if (caller) {
      admit(std::move(*caller));
      --missing;
    } else {
      look();
    }
    if (missing > 0 && deadline.passed()) {
      throw Timeout(fmt::format("{} of {} ranks of {} did not start within {:.0f} s", missing, ranks_, name_,
                                std::chrono::duration<double>(deadline.waited()).count()));
    }
  }
}

void Crew::admit(LineSocket caller) {
  caller.watch(signals_);
  const std::string line = caller.receive(Deadline::after(kHelloLimit));
  if (const auto failure = parse_failure(line)) raise(*failure, fmt::format("a rank of {}", name_));
  const Rank rank = parse_hello(line);
  if (rank >= ranks_ || agents_[static_cast<std::size_t>(rank)]) {
    throw DataError(fmt::format("an agent of {} says that it is rank {} of {}", name_, rank, ranks_));
  }
  caller.rename_peer(fmt::format("rank {} of {}", rank, name_));
  agents_[static_cast<std::size_t>(rank)] = std::move(caller);
}

void Crew::dismiss() {
  listener_.reset();
  agents_.clear();
}

}  // namespace lockstep::cli
