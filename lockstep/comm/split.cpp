// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/engine.h"
#include "lockstep/comm/group.h"
#include "lockstep/comm/group_numbers.h"

namespace lockstep::comm {
namespace {

// What this rank can say of the numbers that a part of the group could get.
GroupBid bid_of(const Group& group, transport::Endpoint& endpoint) {
  using State = GroupNumbers::State;
  GroupBid bid;
  bid.next_sequence = static_cast<std::int64_t>(group.place.numbers->next_sequence());
  for (std::size_t number = 0; number < kMostGroups; ++number) {
    const State state = group.place.numbers->state(number);
    if (state == State::fresh) continue;
    if (state != State::ended) {
      bid.surplus[number] = GroupBid::kTaken;
      continue;
    }
    const std::set<Rank> partners = group.place.numbers->members(number);
    for (Rank member : group.members) {
      if (member == endpoint.rank() || !partners.contains(member)) continue;
      for (transport::StreamId i = 0; i < kEndpointStreamsPerGroup; ++i) {
        const transport::Channel& channel = endpoint.channel(member, first_stream_of(number) + i);
        bid.surplus[number] += static_cast<std::int64_t>(channel.sends_done() - channel.receives_done());
      }
    }
  }
  return bid;
}

GroupPlace agreed_place(const Group& parent, std::span<const GroupBid> bids, std::string_view name) {
  const std::optional<std::size_t> number = agreed_number(bids);
  if (!number) {
    throw UsageError(fmt::format(
        "cannot make group '{}': the {} that are possible beside the world exist already or have failed; "
        "let go of one first",
        name, kMostGroups - 1));
  }
  GroupPlace place{.numbers = parent.place.numbers, .number = *number};
  for (const GroupBid& bid : bids) {
    place.first_sequence = std::max(place.first_sequence, static_cast<std::uint64_t>(bid.next_sequence));
  }
  return place;
}

// The ranks that `me` will be together with, in the order of the new group.
std::vector<std::size_t> companions(std::span<const GroupBid> bids, std::size_t me) {
  std::vector<std::size_t> chosen;
  for (std::size_t rank = 0; rank < bids.size(); ++rank) {
    const bool together = bids[me].colour < 0 ? rank == me : bids[rank].colour == bids[me].colour;
    if (together) chosen.push_back(rank);
  }
  std::stable_sort(chosen.begin(), chosen.end(),
                   [&](std::size_t a, std::size_t b) { return bids[a].key < bids[b].key; });
  return chosen;
}

}  // namespace

Communicator Communicator::split(int colour, int key, std::string group_name) const {
  const auto me = static_cast<std::size_t>(rank());
  std::vector<GroupBid> bids(static_cast<std::size_t>(size()));
  engine_->exclusively([&](transport::Endpoint& endpoint) { bids[me] = bid_of(*group_, endpoint); });
  bids[me].colour = colour;
  bids[me].key = key;
  all_gather(std::as_writable_bytes(std::span(bids)),
             {.dtype = DType::int64, .algorithm = Algorithm::direct});
  GroupPlace place = agreed_place(*group_, bids, group_name);

  GroupSettings settings = group_->settings;
  settings.name = std::move(group_name);
  settings.hosts.clear();
  std::vector<Rank> members;
  for (std::size_t companion : companions(bids, me)) {
    members.push_back(group_->members[companion]);
    if (!group_->settings.hosts.empty()) settings.hosts.push_back(group_->settings.hosts[companion]);
  }
  std::shared_ptr<Group> group;
  engine_->exclusively([&](transport::Endpoint& endpoint) {
    group = std::make_shared<Group>(endpoint, std::move(members), std::move(place), std::move(settings));
  });
  return {engine_, std::move(group)};
}

}  // namespace lockstep::comm
