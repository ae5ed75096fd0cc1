// SPDX-License-Identifier: Apache-2.0
#include "lockstep/metrics/output_file.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "lockstep/base/error.h"

namespace lockstep::metrics {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, const std::error_code& why) {
  throw UsageError(fmt::format("cannot write {}: {}", path.string(), why.message()));
}

std::error_code last_error() {
  return {errno, std::generic_category()};
}

}  // namespace

OutputFile::OutputFile(std::filesystem::path path, Mode mode) : path_(std::move(path)) {
  std::error_code error;
  if (path_.has_parent_path()) std::filesystem::create_directories(path_.parent_path(), error);
  if (error) refuse(path_, error);
  const int how = mode == Mode::append ? O_APPEND : O_TRUNC;
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, 0666);
  if (descriptor_ < 0) refuse(path_, last_error());
}

OutputFile::~OutputFile() {
  ::close(descriptor_);
}

void OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse(path_, last_error());
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace lockstep::metrics
