// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/connect/peer_user.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <netinet/in.h>
#include <unistd.h>

#include "lockstep/base/error.h"

namespace lockstep::transport {
namespace {

// The table is read while it changes, and a change near a row can hide it once.
constexpr int kLooks = 3;

// One end as the table writes it: the address in words of the machine's byte order, the port as a number.
std::string in_table(const SocketAddress& end) {
  if (end.family() == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(end.storage);
    return fmt::format("{:08X}:{:04X}", v4.sin_addr.s_addr, ntohs(v4.sin_port));
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(end.storage);
  std::array<std::uint32_t, 4> words{};
  std::memcpy(words.data(), &v6.sin6_addr, sizeof(words));
  return fmt::format("{:08X}{:08X}{:08X}{:08X}:{:04X}", words[0], words[1], words[2], words[3],
                     ntohs(v6.sin6_port));
}

// Of the calling thread, which may be in another network namespace than the process.
const char* table_for(int family) {
  return family == AF_INET6 ? "/proc/thread-self/net/tcp6" : "/proc/thread-self/net/tcp";
}

std::optional<uid_t> holder_of_other_end(int fd) {
  const SocketAddress mine = local_end(fd);
  const SocketAddress theirs = remote_end(fd);
  for (int look = 0; look < kLooks; ++look) {
    std::ifstream table(table_for(mine.family()));
    if (!table) {
      throw AuthenticationError(
          fmt::format("cannot find out which user it runs as, for {} cannot be read ({}): give all ranks a "
                      "secret (LOCKSTEP_SECRET_FILE)",
                      table_for(mine.family()), std::strerror(errno)));
    }
    if (const auto holder = holder_in_table(table, theirs, mine)) return holder;
  }
  return std::nullopt;
}

}  // namespace

bool unix_peer_is_our_user(int fd) {
  if (local_end(fd).family() != AF_UNIX) return true;
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

void require_tcp_peer_is_our_user(int fd) {
  if (local_end(fd).family() == AF_UNIX) return;
  const std::optional<uid_t> holder = holder_of_other_end(fd);
  if (!holder) throw CommError("no process of this host holds the other end of the connection");
  if (*holder == ::geteuid()) return;
  throw AuthenticationError(
      fmt::format("it runs as user {}, and without a secret only processes of user {} are trusted: give all "
                  "ranks a secret (LOCKSTEP_SECRET_FILE)",
                  *holder, ::geteuid()));
}

std::optional<uid_t> holder_in_table(std::istream& table, const SocketAddress& local,
                                     const SocketAddress& remote) {
  const std::string wanted = fmt::format(": {} {} ", in_table(local), in_table(remote));
  std::string row;
  while (std::getline(table, row)) {
    const std::size_t ends = row.find(wanted);
    if (ends == std::string::npos) continue;
    std::istringstream rest(row.substr(ends + wanted.size()));
    std::string state;
    std::string queues;
    std::string timer;
    std::string retransmits;
    uid_t user = 0;
    int timeout = 0;
    std::uint64_t inode = 0;
    rest >> state >> queues >> timer >> retransmits >> user >> timeout >> inode;
    // Without an inode it belongs to no process (any more, or yet), and its user says nothing.
    if (rest && inode != 0) return user;
  }
  return std::nullopt;
}

}  // namespace lockstep::transport
