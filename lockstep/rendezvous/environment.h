// SPDX-License-Identifier: Apache-2.0
//
// From what launchers leave in the environment to a Placement. Precedence, for every value by itself:
//   command line > LOCKSTEP_* > torchrun's names > Open MPI, PMI, Slurm > configuration > default
// The five values that say who a process is (rank, world, local rank, local world, node rank) are never mixed
// from two launchers: the first of torchrun, Open MPI, PMI and Slurm that left a rank or a world is believed.
// Open MPI and PMI come before Slurm because mpirun inside a Slurm job leaves the numbers of its own daemon
// in SLURM_PROCID.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lockstep/rendezvous/hostfile.h"
#include "lockstep/rendezvous/placement.h"

namespace lockstep::rendezvous {

using Environment = std::map<std::string, std::string, std::less<>>;

// The environment of this process.
Environment process_environment();

// Values by setting name: the flag without dashes, one of setting_names().
using Settings = std::map<std::string, std::string, std::less<>>;
std::vector<std::string_view> setting_names();

// What a setting means and the variable of ours that sets it, in one line; empty for an unknown name.
std::string setting_help(std::string_view name);

struct PlacementInputs {
  Environment environment;
  Settings command_line;
  Settings config;
  std::string config_name = "configuration";  // how sources and errors call the file
  std::vector<HostSlots> hosts;               // from a host file; ranks with the configuration
  std::string detected_host_id;
};

// Pure. UsageError naming the setting, its value and what is accepted.
// torchrun with TORCHELASTIC_USE_AGENT_STORE=True: its agent already listens on MASTER_PORT, so the next port
// is taken (the one before it for 65535). Slurm: the master is the first host of the node list, its port
// 10000 + job id % 20000. When a launcher says that all ranks are on one host they meet on loopback, unless
// the user names the master.
Placement resolve_placement(const PlacementInputs& inputs);

// The same for this process, without a command line or configuration.
Placement placement_from_environment();

// Only the threads, for a process that is no rank; 0: nobody says how many. The shell of an allocation has a
// world and no rank, which is no mistake then.
int resolve_threads(const PlacementInputs& inputs);
int threads_from_environment();  // of this process

}  // namespace lockstep::rendezvous
