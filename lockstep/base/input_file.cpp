// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/input_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw DataError(fmt::format("cannot read {}: {}", path, why));
}

}  // namespace

// Delegates, so that the file is closed when what follows fails.
InputFile::InputFile(std::string path) : InputFile() {
  path_ = std::move(path);
  // O_NONBLOCK: a pipe that stands in the place of the file must not hold us up.
  do {
    fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  } while (fd_ < 0 && errno == EINTR);
  if (fd_ < 0 && errno == ELOOP) refuse(path_, "it is a symbolic link");
  struct stat status {};
  if (fd_ < 0 || ::fstat(fd_, &status) != 0) refuse(path_, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) refuse(path_, "it is not a regular file");
  size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

InputFile::InputFile(InputFile&& other) noexcept : InputFile() {
  *this = std::move(other);
}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

void InputFile::read(std::uint64_t offset, Bytes into) const {
  while (!into.empty()) {
    const ssize_t got = ::pread(fd_, into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw DataError(fmt::format("{} at byte {}: {}", path_, offset, std::strerror(errno)));
    if (got == 0) throw DataError(fmt::format("{} at byte {}: the file ends here", path_, offset));
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

std::string read_text(const std::string& path, std::uint64_t limit) {
  const InputFile file(path);
  if (file.size() > limit) {
    throw DataError(
        fmt::format("{}: {} bytes are more than the {} that it may have", path, file.size(), limit));
  }
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace lockstep
