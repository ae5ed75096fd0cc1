// SPDX-License-Identifier: Apache-2.0
//
// `lockstep bench collectives --tune`: measures what the selector's model is made of, then shows which
// algorithms the selector takes with these figures, and how they do.
#pragma once

#include <functional>
#include <memory>
#include <ostream>

#include "lockstep/cli/bench/crew.h"
#include "lockstep/cli/bench/options.h"
#include "lockstep/cli/bench/site.h"

namespace lockstep::cli {

using StartCrew = std::function<std::unique_ptr<Crew>(const Site& site)>;

// InternalError when a result is wrong: before any figure when it is one of those that the model is made of,
// and after the last row when a collective was.
void run_tune(const BenchOptions& options, const StartCrew& start, std::ostream& out);

}  // namespace lockstep::cli
