// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/connect/poll_set.h"

#include <cerrno>

#include <fmt/format.h>
#include <sys/epoll.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/socket.h"

namespace lockstep::transport {

PollSet::PollSet() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) throw UsageError(fmt::format("cannot make an epoll set: {}", reason_of(errno)));
}

void PollSet::add(int fd) {
  epoll_event event{.events = EPOLLIN, .data = {}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    throw UsageError(fmt::format("cannot watch a descriptor: {}", reason_of(errno)));
  }
}

void PollSet::remove(int fd) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

}  // namespace lockstep::transport
