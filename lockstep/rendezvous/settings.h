// SPDX-License-Identifier: Apache-2.0
//
// The names under which each placement value may be given, and the search through them. For those who resolve
// and those who report a placement.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "lockstep/rendezvous/environment.h"
#include "lockstep/rendezvous/text.h"

namespace lockstep::rendezvous {

// In the order in which they are believed.
enum Launcher : std::size_t { torchrun, open_mpi, pmi, slurm, launcher_count };
inline constexpr std::array<std::string_view, launcher_count> kLauncherNames = {"torchrun", "Open MPI", "PMI",
                                                                                "Slurm"};

// One value and the names under which it may be given; an empty name: not given by that launcher.
struct Field {
  std::string_view setting;
  std::string_view ours;
  std::array<std::string_view, launcher_count> theirs;
  std::string_view meaning;
};

inline constexpr Field kRank = {"rank",
                                "LOCKSTEP_RANK",
                                {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"},
                                "Rank of this process, from 0"};
inline constexpr Field kWorld = {"world",
                                 "LOCKSTEP_WORLD_SIZE",
                                 {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"},
                                 "Number of processes"};
inline constexpr Field kLocalRank = {
    "local-rank",
    "LOCKSTEP_LOCAL_RANK",
    {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"},
    "Rank among those of this host"};
inline constexpr Field kLocalWorld = {
    "local-world",
    "LOCKSTEP_LOCAL_WORLD_SIZE",
    {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"},
    "Number of processes on this host"};
inline constexpr Field kNodeRank = {
    "node-rank", "LOCKSTEP_NODE_RANK", {"GROUP_RANK", "", "", "SLURM_NODEID"}, "Number of this host, from 0"};
inline constexpr Field kMasterHost = {
    "master-addr", "LOCKSTEP_MASTER_ADDR", {"MASTER_ADDR", "", "", ""}, "Host where the ranks meet"};
inline constexpr Field kMasterPort = {
    "master-port", "LOCKSTEP_MASTER_PORT", {"MASTER_PORT", "", "", ""}, "Port where the ranks meet"};
inline constexpr Field kServer = {
    "rendezvous-server", "LOCKSTEP_RENDEZVOUS_SERVER", {}, "Who serves the meeting: rank0 or launcher"};
inline constexpr Field kRun = {"run-id",
                               "LOCKSTEP_RUN_ID",
                               {"TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "", "SLURM_JOB_ID"},
                               "Name of the run, the same on all ranks"};
inline constexpr Field kGeneration = {"generation",
                                      "LOCKSTEP_GENERATION",
                                      {"TORCHELASTIC_RESTART_COUNT", "", "", "SLURM_RESTART_COUNT"},
                                      "How often the run was restarted"};
inline constexpr Field kHostId = {"host-id", "LOCKSTEP_HOST_ID", {}, "What tells this host from others"};
inline constexpr Field kAddress = {
    "address", "LOCKSTEP_ADDRESS", {}, "Address of this host, as peers reach it"};
inline constexpr Field kThreads = {
    "threads", "LOCKSTEP_THREADS", {"OMP_NUM_THREADS", "", "", "SLURM_CPUS_PER_TASK"}, "Threads per process"};
inline constexpr Field kTimeout = {
    "rendezvous-timeout", "LOCKSTEP_RENDEZVOUS_TIMEOUT", {}, "Seconds for all ranks to meet"};

inline constexpr std::array kFields = {kRank,       kWorld,      kLocalRank, kLocalWorld, kNodeRank,
                                       kMasterHost, kMasterPort, kServer,    kRun,        kGeneration,
                                       kHostId,     kAddress,    kThreads,   kTimeout};

// Finds the text of a value and the name it was given under, by precedence. Refers to the inputs, which must
// outlive it. UsageError for a setting name that does not exist.
class Lookup {
 public:
  explicit Lookup(const PlacementInputs& inputs);

  // The launcher whose rank and world are believed; none when the process was started by hand.
  std::optional<Launcher> launcher() const { return launcher_; }

  // A value that says who this process is: only the launcher we believe counts.
  std::optional<NamedText> identity(const Field& field) const;

  // A value that any launcher may give.
  std::optional<NamedText> any(const Field& field) const;

  std::optional<NamedText> by_user(const Field& field) const;  // command line, then LOCKSTEP_*
  std::optional<NamedText> by_launcher(const Field& field, std::size_t launcher) const;
  std::optional<NamedText> by_config(const Field& field) const;

  // The variable itself; null when it is not set.
  const std::string* in_environment(std::string_view name) const;

 private:
  std::optional<Launcher> believed_launcher() const;

  const PlacementInputs& inputs_;
  std::optional<Launcher> launcher_;
};

}  // namespace lockstep::rendezvous
