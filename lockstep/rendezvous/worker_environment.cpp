// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/worker_environment.h"

#include <algorithm>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/tls.h"

namespace lockstep::rendezvous {

transport::Secret secret_for_workers(bool one_host) {
  transport::Secret secret = transport::Secret::from_environment();
  return secret.empty() && one_host ? transport::Secret::generate() : secret;
}

void require_secret(const transport::Address& master, const transport::Secret& secret) {
  if (!secret.empty() || is_loopback(master) || transport::tls_from_environment()) return;
  throw UsageError(
      fmt::format("ranks will not meet at {} without a secret: make one with `lockstep keygen FILE`, copy "
                  "it to all hosts and set LOCKSTEP_SECRET_FILE",
                  master.to_string()));
}

Environment worker_environment(const Environment& base, const WorkerGroup& group, int local_rank) {
  Environment result = base;
  for (const char* stale :
       {"LOCKSTEP_RANK", "LOCKSTEP_WORLD_SIZE", "LOCKSTEP_LOCAL_RANK", "LOCKSTEP_LOCAL_WORLD_SIZE",
        "LOCKSTEP_NODE_RANK", "LOCKSTEP_MASTER_ADDR", "LOCKSTEP_MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE",
        "TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"}) {
    result.erase(stale);
  }
  result["RANK"] = std::to_string(group.first_rank + local_rank);
  result["WORLD_SIZE"] = std::to_string(group.world);
  result["LOCAL_RANK"] = std::to_string(local_rank);
  result["LOCAL_WORLD_SIZE"] = std::to_string(group.local_world);
  result["GROUP_RANK"] = std::to_string(group.node_rank);
  result["MASTER_ADDR"] = group.master.host;
  result["MASTER_PORT"] = std::to_string(group.master.port);
  result["LOCKSTEP_RENDEZVOUS_SERVER"] = "launcher";
  result["LOCKSTEP_RUN_ID"] = group.run;
  result["LOCKSTEP_GENERATION"] = "0";
  result.emplace("OMP_NUM_THREADS", std::to_string(std::max(1, group.cores / group.local_world)));
  if (group.pretended_hosts > 1) {
    result["LOCKSTEP_HOST_ID"] =
        "pretended-" + std::to_string(local_rank * group.pretended_hosts / group.local_world);
  }
  if (!group.secret.empty()) {
    result.erase("LOCKSTEP_SECRET_FILE");
    result["LOCKSTEP_SECRET"] = group.secret.value_for_environment();
  }
  return result;
}

}  // namespace lockstep::rendezvous
