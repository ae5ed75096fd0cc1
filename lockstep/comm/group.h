// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/comm/execution.h"
#include "lockstep/comm/plan.h"
#include "lockstep/transport/endpoint.h"

namespace lockstep::comm {

struct Operation;

// Streams of the endpoint that one group takes: its collective streams, then as many for send and recv.
inline constexpr transport::StreamId kEndpointStreamsPerGroup = 2 * kStreamsPerGroup;

// The ranks of a communicator and the state of its streams. Everything below `planner` belongs to the thread
// that drives the engine.
class Group {
 public:
  // Collective in spirit: all members construct it with the same arguments.
  Group(transport::Endpoint& endpoint, std::vector<Rank> members, transport::StreamId first_stream,
        GroupSettings settings, Topology topology);

  int size() const { return static_cast<int>(members.size()); }
  transport::StreamId collective_stream(std::uint32_t stream) const { return first_stream + stream; }
  transport::StreamId point_to_point_stream(std::uint32_t stream) const {
    return first_stream + kStreamsPerGroup + stream;
  }

  const std::vector<Rank> members;  // ranks of the endpoint
  const transport::StreamId first_stream;
  const GroupSettings settings;
  const Rank rank;  // ours, in this group
  Planner planner;

  // The queue of a collective stream; only its first operation runs.
  struct Stream {
    std::vector<Port> ports;
    std::uint64_t next_sequence = 0;
    std::deque<std::shared_ptr<Operation>> queue;
  };
  std::array<Stream, kStreamsPerGroup> streams;
  std::array<std::vector<Port>, kStreamsPerGroup> point_to_point_ports;
  std::optional<std::string> failure;  // why the group is unusable
};

}  // namespace lockstep::comm
