// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

[[noreturn]] void cannot_read(const std::string& path, const char* why) {
  throw UsageError(fmt::format("cannot read {}: {}", path, why));
}

}  // namespace

// Delegates, so that the file is closed when what follows fails.
MappedFile::MappedFile(std::string path) : MappedFile() {
  path_ = std::move(path);
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (fd_ < 0 || ::fstat(fd_, &status) != 0) cannot_read(path_, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) cannot_read(path_, "it is not a regular file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return;
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd_, 0);
  if (memory == MAP_FAILED) cannot_read(path_, std::strerror(errno));
  bytes_ = {static_cast<const std::byte*>(memory), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  if (fd_ >= 0) ::close(fd_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept : MappedFile() {
  *this = std::move(other);
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void MappedFile::require_whole() const {
  struct stat status {};
  const bool whole = ::fstat(fd_, &status) == 0 && static_cast<std::size_t>(status.st_size) >= size();
  if (!whole) {
    throw DataError(fmt::format("{} at byte {}: the file ends here since it was opened, when it had {} bytes",
                                path_, status.st_size, size()));
  }
}

}  // namespace lockstep
