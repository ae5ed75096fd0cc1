// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/App.hpp>

#include "lockstep/rendezvous/launcher.h"

namespace lockstep::cli {

// Returns when all workers have done their work. Interrupted when a signal ended them; WorkerFailed with the
// first one's exit code, and with a sentence if it had no chance to tell why.
void require_success(const rendezvous::LaunchResult& result);

// The flag --hosts: LaunchOptions::pretended_hosts.
void add_pretended_hosts(CLI::App& app, int& hosts);
// UsageError when some of the hosts would have no worker.
void require_workers_on_each(int hosts, int workers);

}  // namespace lockstep::cli
