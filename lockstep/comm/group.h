// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/comm/execution.h"
#include "lockstep/comm/group_numbers.h"
#include "lockstep/comm/plan.h"
#include "lockstep/transport/endpoint.h"

namespace lockstep::comm {

struct Operation;

// Where a group stands among the groups of its process.
struct GroupPlace {
  std::shared_ptr<GroupNumbers> numbers;  // shared by all groups of the process
  std::size_t number = 0;
  // Of the first call: calls that were made on these streams before are not mistaken for those of this group.
  std::uint64_t first_sequence = 0;
};

// The ranks of a communicator and the state of its streams. Everything below `planner` belongs to the thread
// that drives the engine.
class Group {
 public:
  // Collective in spirit: all members construct it with the same arguments, after they have taken the number.
  // It is given back when the group ends.
  Group(transport::Endpoint& endpoint, std::vector<Rank> members, GroupPlace place, GroupSettings settings);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int size() const { return static_cast<int>(members.size()); }
  transport::StreamId collective_stream(std::uint32_t stream) const { return first_stream + stream; }
  transport::StreamId point_to_point_stream(std::uint32_t stream) const {
    return first_stream + kStreamsPerGroup + stream;
  }

  const std::vector<Rank> members;  // ranks of the endpoint
  const GroupPlace place;
  const transport::StreamId first_stream;
  const GroupSettings settings;
  const Rank rank;  // ours, in this group
  Planner planner;

  // The queue of a collective stream; only its first operation runs.
  struct Stream {
    std::vector<Port> ports;
    std::uint64_t next_sequence = 0;
    std::deque<std::shared_ptr<Operation>> queue;
    // That of the last call, if it heard nothing of the peers: they are compared when the next one begins.
    std::optional<Contract> unheard;
  };
  std::array<Stream, kStreamsPerGroup> streams;
  std::array<std::vector<Port>, kStreamsPerGroup> point_to_point_ports;
  std::optional<std::string> failure;  // why the group is unusable
};

}  // namespace lockstep::comm
