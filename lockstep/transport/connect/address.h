// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::transport {

// "host:port", "[::1]:port", or "@name" for an abstract Unix socket of this host (and network namespace).
struct Address {
  std::string host;        // empty for a Unix socket
  std::uint16_t port = 0;  // 0: any free port, when listening
  std::string unix_name;   // abstract name without the '@'

  std::string to_string() const;
  bool is_unix() const { return !unix_name.empty(); }
  bool operator==(const Address&) const = default;
};

// UsageError naming the text and what is wrong with it. No name resolution.
Address parse_address(std::string_view text);

// True for 127.0.0.0/8, ::1, "localhost" and Unix sockets.
bool is_loopback(const Address& address);

}  // namespace lockstep::transport
