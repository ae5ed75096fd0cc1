// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "lockstep/cli/bench/crew.h"
#include "lockstep/cli/bench/site.h"
#include "lockstep/comm/select.h"

namespace lockstep::cli {

std::unique_ptr<Crew> start_crew(const Site& site, rendezvous::SignalInbox& signals);

// The collective of a case, for the selector.
schedule::CollectiveSpec spec_of(const Case& what, int ranks);

// The algorithm of a candidate as --algorithm takes it.
std::string algorithm_of(const comm::Candidate& candidate);

}  // namespace lockstep::cli
