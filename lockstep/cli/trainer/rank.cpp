// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/trainer/rank.h"

#include <chrono>

#include "lockstep/cli/exit_codes.h"
#include "lockstep/comm/connect.h"
#include "lockstep/rendezvous/environment.h"
#include "lockstep/train/agreement.h"
#include "lockstep/train/run.h"

namespace lockstep::cli {

int run_as_rank(const spec::RunSpec& run, const std::function<int(const comm::Communicator&)>& body) {
  const rendezvous::Placement placement = rendezvous::placement_from_environment();
  const std::chrono::seconds timeout(run.comm.train_timeout_seconds);
  const comm::Communicator world = comm::connect(placement, {.group = {.name = "world", .timeout = timeout}});
  try {
    const int local_ranks = world.ranks_on_this_host();
    train::together(world,
                    [&] { train::prepare_process(run.training, placement.threads.value, local_ranks); });
    return body(world);
  } catch (const train::ToldElsewhere& told) {
    return verdict_on(told.cause()).code;
  }
}

void prepare_alone() {
  train::prepare_process({}, rendezvous::threads_from_environment(), 1);
}

}  // namespace lockstep::cli
