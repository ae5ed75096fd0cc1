// SPDX-License-Identifier: Apache-2.0
#include "lockstep/rendezvous/open_files.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/resource.h>

#include "lockstep/base/error.h"

namespace lockstep::rendezvous {

OpenFilesLimits open_files_limits() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return {};
  return {files.rlim_cur, files.rlim_max};
}

std::optional<std::string> too_many_files(std::string_view who, std::uint64_t needed,
                                          OpenFilesLimits limits) {
  if (needed <= limits.now) return std::nullopt;
  const std::string how = needed <= limits.most
                              ? fmt::format("raise it with `ulimit -n {}`", needed)
                              : fmt::format(
                                    "it cannot be raised above {} here, so ask whoever set that (nofile in "
                                    "/etc/security/limits.conf, LimitNOFILE of systemd, --ulimit of docker)",
                                    limits.most);
  return fmt::format("{} needs about {} open files, but the limit (ulimit -n) is {}: {}", who, needed,
                     limits.now, how);
}

void require_open_files(std::string_view who, std::uint64_t needed) {
  if (auto problem = too_many_files(who, needed, open_files_limits())) throw UsageError(*problem);
}

void cannot(std::string_view what) {
  const int error = errno;
  if (error != EMFILE && error != ENFILE)
    throw UsageError(fmt::format("cannot {}: {}", what, std::strerror(error)));
  throw UsageError(
      fmt::format("cannot {}: all {} files that may be open (ulimit -n) are in use; raise the limit", what,
                  open_files_limits().now));
}

}  // namespace lockstep::rendezvous
