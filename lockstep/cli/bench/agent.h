// SPDX-License-Identifier: Apache-2.0
//
// An agent: one rank of the systems that are measured, and the stream of commands that drives it.
#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "lockstep/cli/bench/line.h"
#include "lockstep/cli/bench/system.h"

namespace lockstep::cli {

// By name of the system.
using Systems = std::map<std::string, TrialFactory, std::less<>>;

// All systems that run on a communicator, and gloo, whose ranks find each other in the folder `gloo_store`.
Systems systems_on(const comm::Communicator& communicator, const std::filesystem::path& gloo_store);

// Introduces itself as `rank` and does what it is told until it is told to quit or the coordinator is gone.
// Sleeps between commands. An error of a trial is sent to the coordinator, and ends the agent unless it is a
// UsageError, after which all ranks stand as before.
void serve_commands(LineSocket coordinator, Rank rank, const Systems& systems);

// Instead of serve_commands(), when there is nothing to serve with: tells the coordinator why, and waits
// until it has closed the connection.
void report_failure(LineSocket coordinator, const std::exception_ptr& error);

}  // namespace lockstep::cli
