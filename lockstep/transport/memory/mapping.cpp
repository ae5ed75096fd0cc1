// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/memory/mapping.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "lockstep/base/error.h"

namespace lockstep::transport {
namespace {

[[noreturn]] void throw_no_room(std::size_t bytes, int error) {
  rlimit limit{};
  ::getrlimit(RLIMIT_AS, &limit);
  const std::string bound =
      limit.rlim_cur == RLIM_INFINITY ? "unlimited" : fmt::format("{} bytes", limit.rlim_cur);
  throw UsageError(
      fmt::format("cannot map {} bytes of memory: {}; the address space of this process is {} (ulimit -v)",
                  bytes, std::strerror(error), bound));
}

}  // namespace

Mapping::~Mapping() {
  if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
}

Mapping Mapping::anonymous(std::size_t bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw_no_room(bytes, errno);
  return Mapping(Bytes(static_cast<std::byte*>(memory), bytes));
}

Mapping Mapping::of_file(int fd, std::size_t offset, std::size_t bytes, Access access) {
  const int protection = access == Access::read ? PROT_READ : PROT_READ | PROT_WRITE;
  const int flags = access == Access::write_soon ? MAP_SHARED | MAP_POPULATE : MAP_SHARED;
  void* const memory = ::mmap(nullptr, bytes, protection, flags, fd, static_cast<off_t>(offset));
  if (memory == MAP_FAILED) throw_no_room(bytes, errno);
  return Mapping(Bytes(static_cast<std::byte*>(memory), bytes));
}

void Mapping::forget() const {
  if (!memory_.empty()) ::madvise(memory_.data(), memory_.size(), MADV_DONTNEED);
}

}  // namespace lockstep::transport
