// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
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

// How often ranks try to agree. They fail when other threads of theirs split other groups and are quicker.
constexpr std::size_t kAttempts = 64;

// What this rank can say of the numbers that a part of the group could get.
struct Offer {
  GroupBid bid;
  std::array<std::uint64_t, kMostGroups> changes = {};  // as they were then
};

Offer offer_of(const Group& group, transport::Endpoint& endpoint) {
  using State = GroupNumbers::State;
  Offer offer;
  offer.bid.next_sequence = static_cast<std::int64_t>(group.place.numbers->next_sequence());
  for (std::size_t number = 0; number < kMostGroups; ++number) {
    const GroupNumbers::Entry entry = group.place.numbers->entry(number);
    std::int64_t& surplus = offer.bid.surplus[number];
    offer.changes[number] = entry.changes;
    if (entry.state == State::fresh) continue;
    if (entry.state != State::ended) {
      surplus = GroupBid::kTaken;
      continue;
    }
    for (Rank member : group.members) {
      if (member == endpoint.rank() || !entry.members.contains(member)) continue;
      for (transport::StreamId i = 0; i < kEndpointStreamsPerGroup; ++i) {
        const transport::Channel& channel = endpoint.channel(member, first_stream_of(number) + i);
        surplus += static_cast<std::int64_t>(channel.sends_done() - channel.receives_done());
      }
    }
  }
  return offer;
}

// A number that is this group's from now on, unless it is not kept.
class Claim {
 public:
  Claim(std::shared_ptr<GroupNumbers> numbers, std::size_t number, std::uint64_t changes)
      : numbers_(std::move(numbers)), number_(number), holds_(numbers_->try_take(number, changes)) {}
  ~Claim() {
    if (holds_) numbers_->put_back(number_);
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  bool holds() const { return holds_; }
  void keep() { holds_ = false; }

 private:
  std::shared_ptr<GroupNumbers> numbers_;  // shared by all groups of the process
  std::size_t number_;
  bool holds_;
};

std::uint64_t first_sequence(std::span<const GroupBid> bids) {
  return static_cast<std::uint64_t>(std::ranges::max(bids, {}, &GroupBid::next_sequence).next_sequence);
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

struct Part {
  std::vector<Rank> members;  // ranks of the endpoint
  GroupSettings settings;
};

Part part_of(const Group& parent, std::span<const std::size_t> ranks, std::string name) {
  Part part{.members = {}, .settings = parent.settings};
  part.settings.name = std::move(name);
  part.settings.hosts.clear();
  for (const std::size_t rank : ranks) {
    part.members.push_back(parent.members[rank]);
    if (!parent.settings.hosts.empty()) part.settings.hosts.push_back(parent.settings.hosts[rank]);
  }
  return part;
}

}  // namespace

// Ranks agree on a number, claim it, and tell each other whether they got it: another thread of one of them
// may have claimed it for another group meanwhile. Then they try again, from a place that those of the other
// group do not try from.
Communicator Communicator::split(int colour, int key, std::string group_name) const {
  const auto me = static_cast<std::size_t>(rank());
  const auto exchange = [&](auto& values) {
    all_gather(std::as_writable_bytes(std::span(values)),
               {.dtype = DType::int64, .algorithm = Algorithm::direct});
  };
  for (std::size_t attempt = 0; attempt < kAttempts; ++attempt) {
    Offer offer;
    engine_->exclusively([&](transport::Endpoint& endpoint) { offer = offer_of(*group_, endpoint); });
    std::vector<GroupBid> bids(static_cast<std::size_t>(size()));
    bids[me] = offer.bid;
    bids[me].colour = colour;
    bids[me].key = key;
    exchange(bids);
    const auto number = agreed_number(bids, attempt * (group_->place.number + 1));
    if (!number) {
      throw UsageError(fmt::format(
          "cannot make group '{}': the {} that are possible beside the world exist already or have failed; "
          "let go of one first",
          group_name, kMostGroups - 1));
    }
    Claim claim(group_->place.numbers, *number, offer.changes[*number]);
    std::vector<std::int64_t> claimed(static_cast<std::size_t>(size()));
    claimed[me] = claim.holds() ? 1 : 0;
    exchange(claimed);
    if (std::ranges::count(claimed, 1) != size()) continue;

    GroupPlace place{
        .numbers = group_->place.numbers, .number = *number, .first_sequence = first_sequence(bids)};
    Part part = part_of(*group_, companions(bids, me), std::move(group_name));
    std::shared_ptr<Group> group;
    engine_->exclusively([&](transport::Endpoint& endpoint) {
      group = std::make_shared<Group>(endpoint, std::move(part.members), std::move(place),
                                      std::move(part.settings));
    });
    claim.keep();
    return {engine_, std::move(group)};
  }
  throw UsageError(
      fmt::format("cannot make group '{}': other threads have split groups at the same time and were quicker "
                  "{} times; let "
                  "fewer of them split at once",
                  group_name, kAttempts));
}

Communicator Communicator::split(const Mesh& mesh, Axis axis) const {
  if (mesh.world() != size()) {
    throw UsageError(
        fmt::format("cannot split {} by a mesh of {} ranks: it has {}", name(), mesh.world(), size()));
  }
  if (mesh.size(axis) == 1) return {};
  if (mesh.size(axis) == mesh.world()) return *this;
  return split(mesh.group_index(rank(), axis), mesh.place_in_group(rank(), axis), std::string(name_of(axis)));
}

}  // namespace lockstep::comm
