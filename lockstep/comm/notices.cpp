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

void push(const Group& group, transport::StreamId stream, transport::Endpoint& endpoint) {
  for (Rank rank = 0; rank < group.size(); ++rank) {
    if (rank != group.rank) endpoint.push_notice(group.members[rank], stream);
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
  push(*operation.group, operation.group->collective_stream(operation.stream), endpoint);
}

void show_unheard(const Operation& operation, transport::Endpoint& endpoint) {
  if (operation.point_to_point || operation.script->hears()) return;
  show_notice(operation, endpoint);
  for (const Port& port : operation.ports) {
    if (port.channel != nullptr) port.channel->pump();
  }
}

void beat(Operation& operation, transport::Endpoint& endpoint) {
  const Group& group = *operation.group;
  if (operation.point_to_point && !operation.awaited.load(std::memory_order_relaxed)) return;
  const std::vector<Waiting> waiting = operation.execution->waiting();
  operation.pulse = {.beats = operation.pulse.beats + 1,
                     .waits_for = waiting.empty() ? -1 : waiting.front().peer};
  set_pulse(operation.notice, operation.pulse);
  const transport::StreamId stream = pulse_stream(operation);
  endpoint.publish(stream, operation.point_to_point ? 0 : operation.sequence, operation.notice);
  if (operation.pulse.beats % kBeatsPerPush == 0) push(group, stream, endpoint);
  listen(operation, endpoint);
}

}  // namespace lockstep::comm
