// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/notices.h"

#include <cstdint>

#include "lockstep/comm/contract.h"
#include "lockstep/comm/diagnose.h"
#include "lockstep/comm/group.h"

namespace lockstep::comm {
namespace {

// Where notices must be sent, not every beat is.
constexpr std::uint32_t kBeatsPerPush = 4;

// To everybody, for those who wait for this rank wherever it waits itself.
void beat_in_world(const Operation& operation, bool pushes, transport::Endpoint& endpoint) {
  transport::NoticeHead head{};
  set_pulse(head, {.beats = operation.pulse.beats,
                   .waits_for = in_world(*operation.group, operation.pulse.waits_for)});
  endpoint.publish(world_pulse_stream(), 0, head);
  for (Rank rank = 0; rank < endpoint.world() && pushes; ++rank) {
    if (rank != endpoint.rank()) endpoint.push_notice(rank, world_pulse_stream());
  }
}

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
  operation.pulse = {.beats = operation.pulse.beats + 1, .waits_for = awaited_peer(operation)};
  const bool pushes = operation.pulse.beats % kBeatsPerPush == 0;
  // In the background, the rank may compute meanwhile.
  if (operation.awaited.load(std::memory_order_relaxed)) beat_in_world(operation, pushes, endpoint);
  set_pulse(operation.notice, operation.pulse);
  publish_notice(operation, endpoint);
  if (pushes) show_notice(operation, endpoint);
  listen(operation, endpoint);
}

}  // namespace lockstep::comm
