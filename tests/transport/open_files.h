// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <unistd.h>

namespace lockstep::test {

// While this lives, the process can open only `left` more descriptors (counted above those that are open).
class OpenFilesLimit {
 public:
  explicit OpenFilesLimit(int left) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(STDERR_FILENO);  // the lowest that is free
    ::close(next);
    rlimit limited = before_;
    limited.rlim_cur = static_cast<rlim_t>(next) + static_cast<rlim_t>(left);
    ::setrlimit(RLIMIT_NOFILE, &limited);
  }
  ~OpenFilesLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  OpenFilesLimit(const OpenFilesLimit&) = delete;
  OpenFilesLimit& operator=(const OpenFilesLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace lockstep::test
