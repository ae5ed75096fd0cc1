// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/descriptor_output.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

#include "lockstep/base/error.h"

namespace lockstep {

void cannot_write(const std::string& path) {
  throw UsageError(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

void write_all(int fd, ConstBytes bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) cannot_write(path);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

void sync_data(int fd, const std::string& path) {
  int result = 0;
  do {
    result = ::fdatasync(fd);
  } while (result != 0 && errno == EINTR);
  // EINVAL: a pipe or device, which has no disk to wait for.
  if (result != 0 && errno != EINVAL) cannot_write(path);
}

}  // namespace lockstep
