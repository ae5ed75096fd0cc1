// SPDX-License-Identifier: Apache-2.0
//
// What people who do not know the secret can do to a port.
#pragma once

#include <chrono>
#include <cstddef>
#include <random>
#include <vector>

#include "lockstep/base/bytes.h"
#include "lockstep/base/deadline.h"
#include "lockstep/transport/connect/address.h"
#include "lockstep/transport/connect/connection.h"
#include "lockstep/transport/connect/listener.h"

namespace lockstep::test {

// The messages of the handshake on the wire.
inline constexpr std::size_t kHelloBytes = 152;
inline constexpr std::size_t kProofBytes = 32;
inline constexpr std::size_t kVerdictBytes = 1;

inline Deadline soon() {
  return Deadline::after(std::chrono::seconds(30));
}

transport::Descriptor raw_connection(const transport::Address& to);
// What the socket does not take is lost.
void raw_send(const transport::Descriptor& socket, ConstBytes bytes);

// Random bytes that do not begin as anything we know.
std::vector<std::byte> garbage(std::mt19937& random, std::size_t bytes);
// A hello that begins as one must; `rest` follows in its place.
std::vector<std::byte> hello_with(std::vector<std::byte> rest);

// What the port says until it closes the connection, as it must.
std::vector<std::byte> read_until_closed(const transport::Descriptor& socket);

// What an honest dialer says to get in, as somebody reads it who stands between it and the port.
std::vector<std::byte> captured_handshake(const transport::Address& port,
                                          const transport::Credentials& honest);

// So that thousands of connections fit into this process.
void allow_open_files(std::size_t count);

}  // namespace lockstep::test
