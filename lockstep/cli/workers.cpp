// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/workers.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/world.h"
#include "lockstep/cli/arguments.h"
#include "lockstep/cli/errors.h"
#include "lockstep/cli/exit_codes.h"

namespace lockstep::cli {

void require_success(const rendezvous::LaunchResult& result) {
  if (result.interrupted_by != 0) throw Interrupted(result.interrupted_by);
  if (!result.first_failure) return;
  const int code = result.exit_code();
  throw WorkerFailed(code, code >= kSignalBase ? result.describe_failure() : "");
}

void add_pretended_hosts(CLI::App& app, int& hosts) {
  app.add_option("--hosts", hosts, "Hosts that the processes take themselves to be on, all being on this one")
      ->check(whole_number(1, kMaxWorld))
      ->capture_default_str();
}

void require_workers_on_each(int hosts, int workers) {
  if (hosts <= workers) return;
  throw UsageError(
      fmt::format("--hosts is {}, but --workers is {}: let each host have one at least", hosts, workers));
}

}  // namespace lockstep::cli
