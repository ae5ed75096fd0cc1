// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/shm/passing.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/socket.h>

#include "lockstep/base/error.h"

namespace lockstep::transport {
namespace {

struct alignas(cmsghdr) ControlBuffer {
  std::byte bytes[CMSG_SPACE(kMaxPassed * sizeof(int))];
};

Passing outcome_of(int error) {
  // Too many descriptors under way is also a matter of waiting until the peer has taken some.
  const bool later = error == EAGAIN || error == EWOULDBLOCK || error == EINTR || error == ETOOMANYREFS;
  return later ? Passing::would_block : Passing::closed;
}

std::vector<Descriptor> take_descriptors(msghdr& header) {
  std::vector<Descriptor> taken;
  for (cmsghdr* item = CMSG_FIRSTHDR(&header); item != nullptr; item = CMSG_NXTHDR(&header, item)) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(item) + i * sizeof(int), sizeof(int));
      taken.emplace_back(fd);
    }
  }
  return taken;
}

}  // namespace

Passing pass(int socket, ConstBytes message, std::span<const int> descriptors) {
  LOCKSTEP_CHECK(descriptors.size() <= kMaxPassed);
  ControlBuffer control{};
  iovec payload = {const_cast<std::byte*>(message.data()), message.size()};
  msghdr header{};
  header.msg_iov = &payload;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes;
  header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* const item = CMSG_FIRSTHDR(&header);
  item->cmsg_level = SOL_SOCKET;
  item->cmsg_type = SCM_RIGHTS;
  item->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(item), descriptors.data(), descriptors.size_bytes());
  const ssize_t sent = ::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) return outcome_of(errno);
  // A few dozen bytes are one buffer of the kernel's.
  LOCKSTEP_CHECK(static_cast<std::size_t>(sent) == message.size());
  return Passing::done;
}

Passing receive_passed(int socket, Bytes message, std::size_t count, std::vector<Descriptor>& descriptors) {
  ControlBuffer control{};
  iovec payload = {message.data(), message.size()};
  msghdr header{};
  header.msg_iov = &payload;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes;
  header.msg_controllen = sizeof(control.bytes);
  const ssize_t got = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return outcome_of(errno);
  if (got == 0) return Passing::closed;
  descriptors = take_descriptors(header);
  // The buffer has room for more than is ever passed, so it was this process that had none.
  if ((header.msg_flags & MSG_CTRUNC) != 0 && descriptors.size() < count) {
    throw UsageError(
        "no descriptor is free for the shared memory of another rank: raise the limit of open files "
        "(ulimit -n)");
  }
  if (static_cast<std::size_t>(got) != message.size() || descriptors.size() != count ||
      (header.msg_flags & MSG_CTRUNC) != 0) {
    throw DataError(
        fmt::format("a peer passed {} bytes and {} descriptors where {} bytes and {} descriptors are due",
                    got, descriptors.size(), message.size(), count));
  }
  return Passing::done;
}

}  // namespace lockstep::transport
