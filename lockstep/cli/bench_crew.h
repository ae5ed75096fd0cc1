// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/deadline.h"
#include "lockstep/cli/bench_line.h"
#include "lockstep/cli/bench_protocol.h"

namespace lockstep::cli {

// The agents of one system, one for each rank, as the coordinator sees them. Whoever derives from it starts
// them, and sees to it that they are gone when it is.
class Crew {
 public:
  virtual ~Crew() = default;
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int ranks() const { return ranks_; }

  // Gives the command to all agents and waits for all of them; replies by rank. UsageError, CommError or
  // InternalError as the first agent to fail (by rank) reports it; PeerLost when one has ended.
  std::vector<Reply> command(const Command& command);

 protected:
  Crew(int ranks, std::string name) : ranks_(ranks), name_(std::move(name)) {}

  const std::filesystem::path& address() const { return listener_.address(); }

  // Waits until all agents have called in. `look` is asked now and then and throws when an agent cannot come
  // any more. CommError naming the ranks that are missing at the deadline.
  void gather(const std::function<void()>& look, Deadline deadline);

  // Lets the agents go: those that wait for a command end.
  void dismiss();

 private:
  int ranks_;
  std::string name_;
  LineListener listener_;
  std::vector<std::optional<LineSocket>> agents_;  // by rank
};

// Ranks as threads of this process over the loopback transport, with gloo and memcpy beside them.
std::unique_ptr<Crew> start_thread_crew(int ranks);

}  // namespace lockstep::cli
