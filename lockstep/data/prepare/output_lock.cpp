// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/prepare/output_lock.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "lockstep/base/error.h"

namespace lockstep::data {

OutputLock::OutputLock(std::string path)
    : path_(std::move(path)), fd_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  if (fd_ < 0) throw UsageError(fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    ::close(fd_);
    throw UsageError(fmt::format(
        "another process is writing here (it holds {}): wait for it, or choose another output", path_));
  }
}

OutputLock::~OutputLock() {
  ::unlink(path_.c_str());
  ::close(fd_);
}

}  // namespace lockstep::data
