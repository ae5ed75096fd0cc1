// SPDX-License-Identifier: Apache-2.0
//
// The kernel's table of sockets, in which others have rows too: one byte chooses the family, then the table.
#include <sstream>
#include <string>

#include <netinet/in.h>

#include "lockstep/transport/connect/peer_user.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;
using transport::SocketAddress;

namespace {

SocketAddress loopback(int family, std::uint16_t port) {
  SocketAddress end;
  end.storage.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET6) {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(end.storage);
    v6.sin6_addr = in6addr_loopback;
    v6.sin6_port = htons(port);
  } else {
    auto& v4 = reinterpret_cast<sockaddr_in&>(end.storage);
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    v4.sin_port = htons(port);
  }
  return end;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const int family = input.number<std::uint8_t>() % 2 == 0 ? AF_INET : AF_INET6;
  const std::string text(input.rest());
  std::istringstream table(text);
  const auto holder = transport::holder_in_table(table, loopback(family, 8080), loopback(family, 80));
  if (!holder) return 0;
  const char* ends = family == AF_INET
                         ? ": 0100007F:1F90 0100007F:0050 "
                         : ": 00000000000000000000000001000000:1F90 00000000000000000000000001000000:0050 ";
  fuzz::require(text.find(ends) != std::string::npos, "only a row with both ends has the holder");
  return 0;
}
