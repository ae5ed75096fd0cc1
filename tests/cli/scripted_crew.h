// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/cli/bench/crew.h"
#include "lockstep/cli/bench/line.h"

#include "tests/support/strangers.h"

namespace lockstep::cli {

// Agents as threads that answer every command by a script instead of measuring anything.
class ScriptedCrew : public Crew {
 public:
  // Called in the thread of the rank. A UsageError is what the agent reports instead.
  using Script = std::function<Reply(Rank rank, const Command& command)>;

  ScriptedCrew(int ranks, rendezvous::SignalInbox& signals, Script script)
      : Crew(ranks, "scripted", signals), script_(std::move(script)) {
    for (Rank rank = 0; rank < ranks; ++rank) {
      threads_.emplace_back([this, rank, at = address()] { converse(rank, at); });
    }
    gather([] {}, test::soon());
  }
  ~ScriptedCrew() override { dismiss(); }

 private:
  void converse(Rank rank, const std::filesystem::path& at) {
    try {
      LineSocket coordinator = LineSocket::connect(at, "the coordinator");
      coordinator.send(format_hello(rank), test::soon());
      for (;;) {
        const Command command = parse_command(coordinator.receive(test::soon()));
        coordinator.send(answer(rank, command), test::soon());
      }
    } catch (const PeerLost&) {
      // Dismissed.
    }
  }

  std::string answer(Rank rank, const Command& command) const {
    try {
      return format_reply(script_(rank, command));
    } catch (const UsageError& error) {
      return format_failure({.kind = Failure::Kind::usage, .text = error.what()});
    }
  }

  Script script_;
  std::vector<std::jthread> threads_;  // last: joined before what they use goes
};

}  // namespace lockstep::cli
