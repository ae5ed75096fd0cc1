// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/placement.h"

#include <fmt/format.h>

#include "lockstep/rendezvous/settings.h"

namespace lockstep::rendezvous {
namespace {

std::string text_of(const std::optional<int>& value) {
  return value ? std::to_string(*value) : "counted when the ranks meet";
}

}  // namespace

std::vector<PlacementLine> describe(const Placement& p) {
  return {
      {kRank.setting, std::to_string(p.rank.value), p.rank.source},
      {kWorld.setting, std::to_string(p.world.value), p.world.source},
      {kLocalRank.setting, text_of(p.local_rank.value), p.local_rank.source},
      {kLocalWorld.setting, text_of(p.local_world.value), p.local_world.source},
      {kNodeRank.setting, text_of(p.node_rank.value), p.node_rank.source},
      {kMasterHost.setting, p.master_host.value, p.master_host.source},
      {kMasterPort.setting, std::to_string(p.master_port.value), p.master_port.source},
      {kServer.setting, p.served_by_rank0.value ? "rank0" : "launcher", p.served_by_rank0.source},
      {kRun.setting, p.run.value, p.run.source},
      {kGeneration.setting, std::to_string(p.generation.value), p.generation.source},
      {kHostId.setting, p.host_id.value, p.host_id.source},
      {kAddress.setting, p.address.value.empty() ? "that of the route to the master" : p.address.value,
       p.address.source},
      {kThreads.setting,
       p.threads.value == 0 ? "cores divided by local ranks" : std::to_string(p.threads.value),
       p.threads.source},
      {kTimeout.setting, fmt::format("{} s", p.timeout.value.count()), p.timeout.source},
  };
}

}  // namespace lockstep::rendezvous
