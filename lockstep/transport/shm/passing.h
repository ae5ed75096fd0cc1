// SPDX-License-Identifier: Apache-2.0
//
// Short messages with file descriptors over a Unix socket.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/transport/connect/connection.h"

namespace lockstep::transport {

inline constexpr std::size_t kMaxPassed = 4;

enum class Passing { done, would_block, closed };

// Neither blocks. The message goes whole or not at all.
Passing pass(int socket, ConstBytes message, std::span<const int> descriptors);

// Receives one message of exactly message.size() bytes with exactly `count` descriptors; DataError if the
// peer sent something else.
Passing receive_passed(int socket, Bytes message, std::size_t count, std::vector<Descriptor>& descriptors);

}  // namespace lockstep::transport
