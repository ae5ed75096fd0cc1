// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/shm/segment.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/base/error.h"

namespace lockstep::transport {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

[[noreturn]] void throw_no_memory(std::size_t bytes, const std::string& why) {
  throw UsageError(fmt::format("cannot get {} bytes of shared memory: {}", bytes, why));
}

// Asked first because exceeding it would raise a signal.
void check_file_size_limit(std::size_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur)
    return;
  throw_no_memory(bytes,
                  fmt::format("files of this process are limited to {} bytes (ulimit -f)", limit.rlim_cur));
}

int reserve_now(int fd, std::size_t bytes) {
  int result = 0;
  do {
    result = ::fallocate(fd, 0, 0, static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  return result;
}

}  // namespace

std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

void require_room(std::size_t bytes, const HostMemory& memory) {
  // Where /proc is hidden, only an attempt can tell.
  if (memory.total == 0) return;
  if (bytes > memory.available) {
    throw_no_memory(bytes, fmt::format("this host has {} bytes of memory available", memory.available));
  }
  if (memory.group_room && bytes > *memory.group_room) {
    throw_no_memory(bytes,
                    fmt::format("the control group of this process has {} bytes left", *memory.group_room));
  }
}

Descriptor make_segment(std::size_t bytes, Reserve reserve) {
  check_file_size_limit(bytes);
  // Before anything is reserved: running out in the middle could end a process of this host, perhaps this
  // one.
  if (reserve == Reserve::now) require_room(bytes, read_host_memory());
  const std::size_t rounded = whole_pages(bytes);
  Descriptor file(::memfd_create("lockstep", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) throw_no_memory(bytes, fmt::format("memfd_create: {}", std::strerror(errno)));
  if (::ftruncate(file.get(), static_cast<off_t>(rounded)) != 0) {
    throw_no_memory(bytes, fmt::format("setting the size: {}", std::strerror(errno)));
  }
  if (reserve == Reserve::now && reserve_now(file.get(), rounded) != 0) {
    const std::string reason = std::strerror(errno);
    throw_no_memory(
        bytes, fmt::format("{}; this host has {} bytes available", reason, read_host_memory().available));
  }
  LOCKSTEP_CHECK(::fcntl(file.get(), F_ADD_SEALS, kSeals) == 0);
  return file;
}

void check_segment(int fd, std::size_t expected) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    throw DataError("a peer passed a descriptor that is no sealed memory segment");
  }
  struct stat status {};
  if (::fstat(fd, &status) != 0 || static_cast<std::size_t>(status.st_size) != expected) {
    throw DataError(fmt::format("a peer announced a memory segment of {} bytes but passed one of {}",
                                expected, static_cast<std::size_t>(status.st_size)));
  }
}

}  // namespace lockstep::transport
