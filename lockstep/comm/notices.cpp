// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/notices.h"

#include <cstdint>
#include <vector>

#include "lockstep/comm/contract.h"
#include "lockstep/comm/diagnose.h"
#include "lockstep/comm/group.h"

namespace lockstep::comm {
namespace {

// Where notices must be sent, not every beat is.
constexpr std::uint32_t kBeatsPerPush = 4;

}  // namespace

void publish_notice(const Operation& operation, transport::Endpoint& endpoint) {
  if (operation.point_to_point) return;
  endpoint.publish(operation.group->collective_stream(operation.stream), operation.sequence,
                   operation.notice);
}

void show_notice(const Operation& operation, transport::Endpoint& endpoint) {
  if (operation.point_to_point) return;
  const Group& group = *operation.group;
  for (Rank rank = 0; rank < group.size(); ++rank) {
    if (rank == group.rank) continue;
    endpoint.push_notice(group.members[rank], group.collective_stream(operation.stream));
  }
}

void show_unheard(const Operation& operation, transport::Endpoint& endpoint) {
  if (operation.point_to_point || operation.script->hears()) return;
  show_notice(operation, endpoint);
  for (const Port& port : operation.ports) {
    if (port.channel != nullptr) port.channel->pump();
  }
}

void beat(Operation& operation, transport::Endpoint& endpoint) {
  if (operation.point_to_point) return;
  const std::vector<Waiting> waiting = operation.execution->waiting();
  operation.pulse = {.beats = operation.pulse.beats + 1,
                     .waits_for = waiting.empty() ? -1 : waiting.front().peer};
  set_pulse(operation.notice, operation.pulse);
  publish_notice(operation, endpoint);
  if (operation.pulse.beats % kBeatsPerPush == 0) show_notice(operation, endpoint);
  listen(operation, endpoint);
}

}  // namespace lockstep::comm
