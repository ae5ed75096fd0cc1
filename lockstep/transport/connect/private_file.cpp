// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/connect/private_file.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/connect/connection.h"

namespace lockstep::transport {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view what, std::string_view why) {
  throw UsageError(fmt::format("cannot use the {} {}: {}", what, path.string(), why));
}

void check_mode(const struct stat& status, const std::filesystem::path& path, std::string_view what) {
  if (!S_ISREG(status.st_mode)) fail(path, what, "it is not a regular file");
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    fail(path, what,
         fmt::format("others than its owner may access it (mode {:03o}); run `chmod 600 {}`",
                     status.st_mode & 0777, path.string()));
  }
}

}  // namespace

std::string read_private_file(const std::filesystem::path& path, std::string_view what,
                              std::size_t max_bytes) {
  // Non-blocking: opening a FIFO must not hang.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) fail(path, what, std::strerror(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail(path, what, std::strerror(errno));
  check_mode(status, path, what);

  std::string content(max_bytes + 1, '\0');
  std::size_t length = 0;
  while (length < content.size()) {
    const ssize_t got = ::read(file.get(), content.data() + length, content.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, what, std::strerror(errno));
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  if (length > max_bytes) fail(path, what, fmt::format("it is longer than {} bytes", max_bytes));
  content.resize(length);
  return content;
}

}  // namespace lockstep::transport
