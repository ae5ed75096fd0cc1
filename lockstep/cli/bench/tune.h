// SPDX-License-Identifier: Apache-2.0
//
// `lockstep bench collectives --tune`: measures what the selector's model is made of, then shows which
// algorithms the selector takes with these figures, and how they do.
#pragma once

#include <ostream>

#include "lockstep/cli/bench/options.h"
#include "lockstep/rendezvous/signal_inbox.h"

namespace lockstep::cli {

void run_tune(const BenchOptions& options, rendezvous::SignalInbox& signals, std::ostream& out);

}  // namespace lockstep::cli
