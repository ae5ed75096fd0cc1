// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/disk.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "lockstep/base/descriptor_output.h"
#include "lockstep/base/error.h"

namespace lockstep {
namespace {

// The kernel begins to write when so many bytes have come, not only at the sync: the disk works while the
// next ones are made. Two such windows are enough for it, and more are not left to the sync, which nobody can
// tell from a disk that hangs.
constexpr std::uint64_t kWindowBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kPageBytes = std::uint64_t{1} << 16;  // the largest that hosts have

class RealFile : public Disk::File {
 public:
  explicit RealFile(std::string path) : path_(std::move(path)) {
    do {
      fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    } while (fd_ < 0 && errno == EINTR);
    if (fd_ < 0) cannot_write(path_);
  }
  ~RealFile() override { ::close(fd_); }
  RealFile(const RealFile&) = delete;
  RealFile& operator=(const RealFile&) = delete;

  void write(ConstBytes bytes) override {
    while (!bytes.empty()) {
      const ConstBytes block = bytes.first(std::min<std::size_t>(bytes.size(), kWindowBytes));
      write_all(fd_, block, path_);
      size_ += block.size();
      bytes = bytes.subspan(block.size());
      if (size_ - started_ >= kWindowBytes) start_window();
    }
  }
  void sync() override { sync_data(fd_, path_); }

 private:
  // Only a hint: whatever is wrong with the disk is told later. Whole pages only, because the next write
  // would have to wait for one that is on its way.
  void start_window() {
    const std::uint64_t end = size_ / kPageBytes * kPageBytes;
    ::sync_file_range(fd_, static_cast<off_t>(started_), static_cast<off_t>(end - started_),
                      SYNC_FILE_RANGE_WRITE);
    if (before_ > awaited_) await_until(before_);
    before_ = started_;
    started_ = end;
  }
  // Not only a hint: the kernel tells an error once, so sync() would not hear of this one. A file that no
  // disk is behind, and a kernel without the call, leave all to sync().
  void await_until(std::uint64_t end) {
    const int result =
        ::sync_file_range(fd_, static_cast<off_t>(awaited_), static_cast<off_t>(end - awaited_),
                          SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    if (result != 0 && errno != ESPIPE && errno != EINVAL && errno != ENOSYS) cannot_write(path_);
    awaited_ = end;
  }

  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
  std::uint64_t started_ = 0;  // so many bytes are on their way
  std::uint64_t before_ = 0;   // so many were before the last window
  std::uint64_t awaited_ = 0;  // so many have arrived
};

class RealDisk : public Disk {
 public:
  std::unique_ptr<File> create(const std::string& path) override { return std::make_unique<RealFile>(path); }
  void make_folder(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) throw UsageError(fmt::format("cannot make the folder {}: {}", path, error.message()));
  }
  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) == 0) return;
    throw UsageError(fmt::format("cannot rename {} to {}: {}", from, to, std::strerror(errno)));
  }
  void sync_folder(const std::string& path) override {
    const int fd = ::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) cannot_sync(path);
    const int result = ::fsync(fd);
    const int why = errno;
    ::close(fd);
    errno = why;
    // EINVAL: a file system that cannot sync folders.
    if (result != 0 && errno != EINVAL) cannot_sync(path);
  }
  void remove_all(const std::string& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) throw UsageError(fmt::format("cannot remove {}: {}", path, error.message()));
  }

 private:
  [[noreturn]] static void cannot_sync(const std::string& path) {
    throw UsageError(fmt::format("cannot sync the folder {}: {}", path, std::strerror(errno)));
  }
};

}  // namespace

Disk& real_disk() {
  static RealDisk disk;  // has no state
  return disk;
}

void write_synced(Disk& disk, const std::string& path, std::string_view content) {
  const std::unique_ptr<Disk::File> file = disk.create(path);
  file->write(std::as_bytes(std::span(content)));
  file->sync();
}

void replace_file(Disk& disk, const std::string& path, std::string_view content) {
  const std::string temporary = path + ".new";
  write_synced(disk, temporary, content);
  disk.rename(temporary, path);
  disk.sync_folder(std::filesystem::path(path).parent_path().string());
}

}  // namespace lockstep
