// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::transport::tcp {

// A message of at most this size is sent at once, whether or not its receive has been posted.
inline constexpr std::size_t kEagerBytes = std::size_t{16} * 1024;

// How much a channel may have sent eagerly that its receiver has not yet taken; each message also costs
// kEagerOverhead, which covers what the receiver must remember of it. So the messages that nobody waits for
// take at most kMaxStreams * kEagerBudget of memory per peer.
inline constexpr std::size_t kEagerBudget = std::size_t{256} * 1024;
inline constexpr std::size_t kEagerOverhead = 256;

// Larger messages travel in segments [i * kSegmentBytes, (i + 1) * kSegmentBytes), each in a frame of its
// own.
inline constexpr std::size_t kSegmentBytes = std::size_t{1024} * 1024;

// How many bytes of viewed messages a channel keeps in flight or waiting to be consumed.
inline constexpr std::size_t kViewWindow = std::size_t{4} * 1024 * 1024;

inline constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{1} << 48;
inline constexpr std::size_t kMaxLinksPerPeer = 16;

// Credits for messages that this rank has not offered yet: more than any program posts.
inline constexpr std::size_t kMaxEarlyCredits = 1 << 16;

}  // namespace lockstep::transport::tcp
