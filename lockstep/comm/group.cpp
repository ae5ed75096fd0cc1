// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/group.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/comm/operation.h"

namespace lockstep::comm {
namespace {

Rank rank_among(const std::vector<Rank>& members, Rank endpoint_rank) {
  const auto found = std::find(members.begin(), members.end(), endpoint_rank);
  LOCKSTEP_CHECK(found != members.end(), "a rank must be a member of its own group");
  return static_cast<Rank>(found - members.begin());
}

Topology topology_of(const GroupSettings& settings, std::size_t world) {
  if (!settings.hosts_are_near) {
    Topology apart = {.host_of = std::vector<int>(world)};
    std::iota(apart.host_of.begin(), apart.host_of.end(), 0);
    return apart;
  }
  return {.host_of = settings.hosts.empty() ? std::vector<int>(world, 0) : settings.hosts};
}

std::vector<Port> open_ports(transport::Endpoint& endpoint, const std::vector<Rank>& members,
                             transport::StreamId stream) {
  std::vector<Port> ports(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i] == endpoint.rank()) continue;
    transport::Channel& channel = endpoint.channel(members[i], stream);
    ports[i] = {.channel = &channel, .sent = channel.sends_done(), .received = channel.receives_done()};
  }
  return ports;
}

}  // namespace

Group::Group(transport::Endpoint& endpoint, std::vector<Rank> member_ranks, GroupPlace group_place,
             GroupSettings group_settings)
    : members(std::move(member_ranks)),
      place(std::move(group_place)),
      first_stream(first_stream_of(place.number)),
      settings(std::move(group_settings)),
      rank(rank_among(members, endpoint.rank())),
      planner(rank, topology_of(settings, members.size()), settings.links) {
  for (std::uint32_t i = 0; i < kStreamsPerGroup; ++i) {
    streams[i].next_sequence = place.first_sequence;
    streams[i].ports = open_ports(endpoint, members, collective_stream(i));
    point_to_point_ports[i] = open_ports(endpoint, members, point_to_point_stream(i));
  }
}

Group::~Group() {
  std::uint64_t next_sequence = place.first_sequence;
  for (const Stream& stream : streams) next_sequence = std::max(next_sequence, stream.next_sequence);
  place.numbers->give_back(
      place.number, {.members = members, .next_sequence = next_sequence, .failed = failure.has_value()});
}

}  // namespace lockstep::comm
