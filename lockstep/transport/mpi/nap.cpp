// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/mpi/nap.h"

#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lockstep/base/error.h"

namespace lockstep::transport::mpi {
namespace {

Descriptor checked(int fd, const char* what) {
  if (fd < 0) {
    throw UsageError(fmt::format("mpi: {} failed: {}; raise the limit of open files (ulimit -n)", what,
                                 std::strerror(errno)));
  }
  return Descriptor(fd);
}

void watch(const Descriptor& epoll, const Descriptor& watched) {
  epoll_event event = {};
  event.events = EPOLLIN;
  LOCKSTEP_CHECK(epoll_ctl(epoll.get(), EPOLL_CTL_ADD, watched.get(), &event) == 0);
}

void set_timer(const Descriptor& timer, std::chrono::nanoseconds duration) {
  itimerspec spec = {};
  spec.it_value.tv_sec = duration.count() / 1'000'000'000;
  spec.it_value.tv_nsec = duration.count() % 1'000'000'000;
  LOCKSTEP_CHECK(timerfd_settime(timer.get(), 0, &spec, nullptr) == 0);
}

}  // namespace

Nap::Nap()
    : timer_(checked(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "timerfd_create")),
      event_(checked(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")),
      both_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")) {
  watch(both_, timer_);
  watch(both_, event_);
}

void Nap::begin(std::chrono::nanoseconds duration) {
  set_timer(timer_, duration);
}

void Nap::end() {
  // Setting the timer also forgets that it had fired.
  set_timer(timer_, std::chrono::nanoseconds(0));
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t bytes = read(event_.get(), &count, sizeof(count));
}

void Nap::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t bytes = write(event_.get(), &one, sizeof(one));
}

}  // namespace lockstep::transport::mpi
