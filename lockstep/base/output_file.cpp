// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/output_file.h"

#include <cerrno>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/base/descriptor_output.h"
#include "lockstep/base/error.h"

namespace lockstep {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

// Makes a rename in the folder of `path` durable. Some file systems refuse to sync a folder; the rename
// itself holds there too.
void sync_folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

// What others write there too must not be replaced, though it may be a file.
bool is_own_descriptor(std::string_view path) {
  return path.starts_with("/dev/std") || path.starts_with("/dev/fd/") || path.starts_with("/proc/");
}

void write_through(const std::string& path, std::string_view content) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) cannot_write(path);
  try {
    write_all(fd, std::as_bytes(std::span(content)), path);
  } catch (...) {
    ::close(fd);
    throw;
  }
  ::close(fd);
}

// Through links, also those to what is not there yet.
std::string target_of(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the kernel's
  std::filesystem::path target = path;
  std::error_code error;
  for (int links = 0; links < kMostLinks && std::filesystem::is_symlink(target, error); ++links) {
    target = target.parent_path() / std::filesystem::read_symlink(target, error);
  }
  return target.string();
}

}  // namespace

OutputFile::OutputFile(std::string path, std::uint64_t keep, const std::string& name)
    : path_(std::move(path)), size_(keep) {
  const int mode = keep == 0 ? O_CREAT | O_TRUNC : 0;
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | mode, 0644);
  if (fd_ < 0) cannot_write(name.empty() ? path_ : name);
  struct stat status {};
  const auto end = static_cast<off_t>(keep);
  const bool is_known = ::fstat(fd_, &status) == 0;
  if (is_known && status.st_size < end) {
    ::close(fd_);
    throw UsageError(fmt::format("cannot continue {}: it has fewer than {} bytes", path_, keep));
  }
  if (!is_known || ::ftruncate(fd_, end) != 0 || ::lseek(fd_, end, SEEK_SET) != end) {
    const int reason = errno;
    ::close(fd_);
    errno = reason;
    cannot_write(name.empty() ? path_ : name);
  }
  buffer_.reserve(kBufferBytes);
}

OutputFile::~OutputFile() {
  ::close(fd_);
}

void OutputFile::write(ConstBytes bytes) {
  size_ += bytes.size();
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() >= kBufferBytes) return write_all(fd_, bytes, path_);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void OutputFile::flush() {
  write_all(fd_, buffer_, path_);
  buffer_.clear();
}

void OutputFile::sync() {
  flush();
  sync_data(fd_, path_);
}

void OutputFile::rename_to(const std::string& path) {
  sync();
  if (::rename(path_.c_str(), path.c_str()) != 0) cannot_write(path);
  sync_folder_of(path);
  path_ = path;
}

void write_atomically(const std::string& path, std::string_view content) {
  struct stat before {};
  const bool is_there = ::stat(path.c_str(), &before) == 0;
  if ((is_there && !S_ISREG(before.st_mode)) || is_own_descriptor(path)) return write_through(path, content);
  const std::string target = target_of(path);
  const std::string temporary = fmt::format("{}.partial-{}", target, ::getpid());
  try {
    OutputFile file(temporary, 0, path);
    file.write(content);
    if (is_there) ::chmod(temporary.c_str(), before.st_mode & 07777);
    file.rename_to(target);
  } catch (const UsageError&) {
    ::unlink(temporary.c_str());
    throw;
  }
}

}  // namespace lockstep
