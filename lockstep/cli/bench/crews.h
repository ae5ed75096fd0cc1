// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "lockstep/cli/bench/crew.h"
#include "lockstep/cli/bench/options.h"
#include "lockstep/comm/select.h"

namespace lockstep::cli {

// Our ranks over a transport of --transport; "auto" is what ranks of one host choose: shared memory.
std::string resolved_transport(const std::string& transport);
std::unique_ptr<Crew> start_crew(int ranks, const std::string& transport, rendezvous::SignalInbox& signals);

// What the communicators of such a crew believe about their hosts.
comm::Topology topology_of(int ranks, const std::string& transport);

// The collective of a case, for the selector.
schedule::CollectiveSpec spec_of(const Case& what, int ranks);

// The algorithm of a candidate as --algorithm takes it.
std::string algorithm_of(const comm::Candidate& candidate);

}  // namespace lockstep::cli
