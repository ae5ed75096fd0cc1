// SPDX-License-Identifier: Apache-2.0
#include "lockstep/metrics/output_file.h"

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"

namespace lockstep::metrics {
namespace {

std::string failure(const std::filesystem::path& path, const std::error_code& why) {
  return fmt::format("cannot write {}: {}", path.string(), why.message());
}

std::error_code last_error() {
  return {errno, std::generic_category()};
}

}  // namespace

OutputFile::OutputFile(std::filesystem::path path, Mode mode) : path_(std::move(path)) {
  std::error_code error;
  if (path_.has_parent_path()) std::filesystem::create_directories(path_.parent_path(), error);
  if (error) throw UsageError(failure(path_, error));
  const int how = mode == Mode::append ? 0 : O_TRUNC;
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND | how, 0666);
  if (descriptor_ < 0) throw UsageError(failure(path_, last_error()));
}

OutputFile::~OutputFile() {
  if (dropped_ > 1) {
    log::warning(fmt::format("{} lines or records of {} are missing: they could not be written", dropped_,
                             path_.string()));
  }
  ::close(descriptor_);
}

bool OutputFile::write(std::string_view bytes) {
  bool is_good = torn_ == 0 || take_back();
  for (std::string_view left = bytes; is_good && !left.empty();) {
    const ssize_t written = ::write(descriptor_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    is_good = written >= 0;
    if (!is_good) continue;
    left.remove_prefix(static_cast<std::size_t>(written));
    torn_ = left.empty() ? 0 : torn_ + written;
  }
  if (is_good) return true;
  if (dropped_++ == 0) log::warning(failure(path_, last_error()) + "; what does not fit is left out");
  if (torn_ > 0) take_back();
  return false;
}

bool OutputFile::take_back() {
  struct stat status = {};
  if (::fstat(descriptor_, &status) != 0) return false;
  // What is no regular file keeps nothing that could be taken back.
  if (S_ISREG(status.st_mode) && ::ftruncate(descriptor_, status.st_size - torn_) != 0) return false;
  torn_ = 0;
  return true;
}

}  // namespace lockstep::metrics
