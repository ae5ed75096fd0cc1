// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/spec/run_spec.h"
#include "lockstep/transport/connect/address.h"

namespace lockstep::cli {

// How workers of a run are started on this host.
struct WorkerCommand {
  std::string file;                    // of the run
  std::vector<std::string> key_flags;  // --section.key value
  int workers = 1;
};

// Starts the workers and keeps the run going when some are lost, until it has ended; gives the exit code, or
// raises what has ended it. With `listen`, workers of other hosts may join (lockstep agent). `run` is that of
// the command, checked.
int supervise(const spec::RunSpec& run, const WorkerCommand& command,
              const std::optional<transport::Address>& listen);

// Starts the workers and waits for them: the first failure ends all.
int launch_once(const spec::RunSpec& run, const WorkerCommand& command);

// Workers for a run that is supervised at `coordinator`, on another host.
int tend(const spec::RunSpec& run, const WorkerCommand& command, const transport::Address& coordinator);

}  // namespace lockstep::cli
