// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/memory/bell.h"

#include <atomic>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/memory/fence.h"

namespace lockstep::transport {
namespace {

void write_eventfd(int fd) {
  const std::uint64_t one = 1;
  // The only failure of a valid eventfd is a full counter, and then it is readable already.
  [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof(one));
}

}  // namespace

Doorbell::Doorbell(Word& sleeping) : sleeping_(sleeping), fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (fd_ < 0) {
    throw UsageError(
        fmt::format("cannot make an eventfd to sleep on: {}; raise the limit on open files (ulimit -n)",
                    std::strerror(errno)));
  }
}

Doorbell::~Doorbell() {
  ::close(fd_);
}

void Doorbell::arm() {
  sleeping_.store(sleeping_.load(std::memory_order_relaxed) | 1, std::memory_order_relaxed);
  full_fence();
}

void Doorbell::disarm() {
  const std::uint64_t value = sleeping_.load(std::memory_order_relaxed);
  sleeping_.store(value + (value & 1), std::memory_order_relaxed);
}

bool Doorbell::drain() const {
  std::uint64_t count = 0;
  return ::read(fd_, &count, sizeof(count)) == sizeof(count);
}

void Doorbell::ring() const {
  write_eventfd(fd_);
}

void Bell::ring() {
  full_fence();
  const std::uint64_t sleeping = sleeping_->load(std::memory_order_relaxed);
  if ((sleeping & 1) == 0 || sleeping == rung_) [[likely]] {
    return;
  }
  rung_ = sleeping;
  write_eventfd(fd_);
}

}  // namespace lockstep::transport
