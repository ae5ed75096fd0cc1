// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/deadline.h"
#include "lockstep/cli/bench/line.h"
#include "lockstep/cli/bench/protocol.h"
#include "lockstep/comm/connect.h"

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
  // InternalError as the first agent to fail (by rank) reports it; PeerLost when one has ended. After a
  // UsageError the agents take further commands.
  std::vector<Reply> command(const Command& command);

 protected:
  // Interrupted as soon as one of the signals comes while the crew waits for its agents.
  Crew(int ranks, std::string name, rendezvous::SignalInbox& signals);

  // Where the agents call in, until they are gathered.
  std::filesystem::path address() const;

  // Waits until all agents have called in. `look` is asked now and then and throws when an agent cannot come
  // any more. What an agent reports instead of calling in is raised as command() does. Timeout naming the
  // number of ranks that are missing at the deadline. After an error the agents are dismissed.
  void gather(const std::function<void()>& look, Deadline deadline);

  // Lets the agents go: those that wait for a command end.
  void dismiss();

 private:
  void receive_all(const std::function<void()>& look, Deadline deadline);
  void admit(LineSocket caller);

  int ranks_;
  std::string name_;
  rendezvous::SignalInbox& signals_;
  std::optional<LineListener> listener_;           // goes when all have come, so that nothing is left behind
  std::vector<std::optional<LineSocket>> agents_;  // by rank
};

// Ranks as threads of this process over the loopback transport, with gloo and memcpy beside them. `hosts` by
// rank, as GroupSettings has them.
std::unique_ptr<Crew> start_thread_crew(int ranks, const std::vector<int>& hosts,
                                        rendezvous::SignalInbox& signals);

struct RankProcesses {
  int ranks = 1;
  comm::Carrier carrier = comm::Carrier::automatic;
  std::vector<int> pretended_hosts = {};  // by rank: its number goes for a host; empty: all are on this one
};

// Ranks as processes: this program again, as `lockstep bench agent`, with gloo and memcpy beside them. Call
// from a thread that outlives the crew.
std::unique_ptr<Crew> start_process_crew(const RankProcesses& what, rendezvous::SignalInbox& signals);

// The same, started by mpirun and connected over MPI. UsageError without MPI or mpirun.
std::unique_ptr<Crew> start_crew_over_mpi(int ranks, rendezvous::SignalInbox& signals);

// What the processes of these two run.
void run_process_agent(comm::Carrier carrier);

// Open MPI's own collectives. UsageError when mpirun or our agent for it is not there.
std::unique_ptr<Crew> start_mpi_opponent(int ranks, rendezvous::SignalInbox& signals);

// The environment variables in which agents in other processes find where to call in, and the folder for
// gloo_trials().
inline constexpr const char* kBenchSocketVariable = "LOCKSTEP_BENCH_SOCKET";
inline constexpr const char* kBenchStoreVariable = "LOCKSTEP_BENCH_STORE";

}  // namespace lockstep::cli
