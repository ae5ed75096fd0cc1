// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/file_lock.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lockstep {
namespace {

std::string this_process() {
  std::array<char, 256> host = {};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("process {} on {}", ::getpid(), host.data());
}

std::string holder_of(int fd) {
  std::array<char, 300> text = {};
  const ssize_t read = ::pread(fd, text.data(), text.size(), 0);
  std::string holder(text.data(), read > 0 ? static_cast<std::size_t>(read) : 0);
  holder.erase(std::min(holder.find('\n'), holder.size()));
  return holder.starts_with("process ") ? holder : "another process";
}

// Whether the path still leads to the open file: its last holder may have removed it before we locked it.
bool is_at(const std::string& path, int fd) {
  struct stat there = {};
  struct stat open = {};
  return ::stat(path.c_str(), &there) == 0 && ::fstat(fd, &open) == 0 && there.st_ino == open.st_ino &&
         there.st_dev == open.st_dev;
}

}  // namespace

FileLock::FileLock(std::string path) : path_(std::move(path)) {
  while (true) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd_ < 0) throw UsageError(fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      const std::string holder = holder_of(fd_);
      ::close(fd_);
      throw InUseError(
          fmt::format("{} is writing here (it holds {}): wait for it, or write elsewhere", holder, path_));
    }
    if (is_at(path_, fd_)) break;
    ::close(fd_);
  }
  const std::string holder = this_process() + "\n";
  // A full disk leaves no room for the name, and the lock as strong as it was.
  [[maybe_unused]] const bool named =
      ::ftruncate(fd_, 0) == 0 && ::pwrite(fd_, holder.data(), holder.size(), 0) > 0;
}

FileLock::~FileLock() {
  ::unlink(path_.c_str());
  ::close(fd_);
}

}  // namespace lockstep
