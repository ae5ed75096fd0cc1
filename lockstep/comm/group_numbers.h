// SPDX-License-Identifier: Apache-2.0
//
// Every group of a process has a number, the same on all its members: it says which streams of the endpoint
// are its own. The number of a group that has ended in order is used again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <span>

#include "lockstep/base/rank.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/transport/endpoint.h"

namespace lockstep::comm {

// Streams of the endpoint that one group takes: its collective streams, then as many for send and recv.
inline constexpr transport::StreamId kEndpointStreamsPerGroup = 2 * kStreamsPerGroup;
inline constexpr std::size_t kMostGroups = transport::kMaxStreams / kEndpointStreamsPerGroup;

constexpr transport::StreamId first_stream_of(std::size_t number) {
  return static_cast<transport::StreamId>(number) * kEndpointStreamsPerGroup;
}

// What a rank tells the others of a group that is about to be split, as the ranks exchange it.
struct GroupBid {
  std::int64_t colour = 0;
  std::int64_t key = 0;
  std::int64_t next_sequence = 0;  // more than all calls that this rank has ever made in a group
  // By number: how many more messages this rank has sent to the others under it than it has received from
  // them.
  std::array<std::int64_t, kMostGroups> surplus = {};

  static constexpr std::int64_t kTaken = std::numeric_limits<std::int64_t>::max();
};

// The first number, counted from `from` and from the beginning after the end, that is taken nowhere and under
// which all that was sent has been received. (No rank receives more than was sent, so a sum of zero means
// that nothing is left between any two.) Pure: all ranks find the same.
std::optional<std::size_t> agreed_number(std::span<const GroupBid> bids, std::size_t from = 0);

// The numbers of one process. Thread-safe.
class GroupNumbers {
 public:
  enum class State : std::uint8_t { fresh, taken, ended, failed };

  // How a group ended.
  struct End {
    std::span<const Rank> members;    // ranks of the endpoint
    std::uint64_t next_sequence = 0;  // one more than its last call
    bool failed = false;
  };

  // What is known of a number at an instant.
  struct Entry {
    State state = State::fresh;
    std::set<Rank> members = {};  // whom groups of this number have had
    std::uint64_t changes = 0;    // how often it was taken or given back
  };

  Entry entry(std::size_t number) const;
  State state(std::size_t number) const;  // needs no memory
  std::uint64_t next_sequence() const;

  void take(std::size_t number);
  // The same if nothing has happened to the number since it had so many changes; false otherwise.
  bool try_take(std::size_t number, std::uint64_t changes);
  // As if it had not been taken. No message may have been sent under it.
  void put_back(std::size_t number);
  // Streams on which a group has failed are not used again, for messages and reports of failure may be left
  // on them. Without memory it counts as failed.
  void give_back(std::size_t number, const End& end);

 private:
  mutable std::mutex mutex_;
  std::array<Entry, kMostGroups> entries_;
  std::array<State, kMostGroups> before_ = {};  // they were taken
  std::uint64_t next_sequence_ = 0;
};

}  // namespace lockstep::comm
