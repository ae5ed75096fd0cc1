// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/group.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/operation.h"

namespace lockstep::comm {
namespace {

Rank rank_among(const std::vector<Rank>& members, Rank endpoint_rank) {
  const auto found = std::find(members.begin(), members.end(), endpoint_rank);
  LOCKSTEP_CHECK(found != members.end(), "a rank must be a member of its own group");
  return static_cast<Rank>(found - members.begin());
}

std::vector<Port> open_ports(transport::Endpoint& endpoint, const std::vector<Rank>& members,
                             transport::StreamId stream) {
  std::vector<Port> ports(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i] != endpoint.rank()) ports[i].channel = &endpoint.channel(members[i], stream);
  }
  return ports;
}

}  // namespace

Group::Group(transport::Endpoint& endpoint, std::vector<Rank> member_ranks, transport::StreamId stream,
             GroupSettings group_settings, Topology topology)
    : members(std::move(member_ranks)),
      first_stream(stream),
      settings(std::move(group_settings)),
      rank(rank_among(members, endpoint.rank())),
      planner(rank, std::move(topology), settings.links) {
  if (first_stream + kEndpointStreamsPerGroup > transport::kMaxStreams) {
    throw UsageError(
        fmt::format("group '{}' would be number {} of this process: at most {} can be made; reuse groups "
                    "instead of splitting again",
                    settings.name, first_stream / kEndpointStreamsPerGroup + 1,
                    transport::kMaxStreams / kEndpointStreamsPerGroup));
  }
  for (std::uint32_t i = 0; i < kStreamsPerGroup; ++i) {
    streams[i].ports = open_ports(endpoint, members, collective_stream(i));
    point_to_point_ports[i] = open_ports(endpoint, members, point_to_point_stream(i));
  }
}

}  // namespace lockstep::comm
