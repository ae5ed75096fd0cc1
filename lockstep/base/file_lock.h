// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/base/error.h"

namespace lockstep {

// Another process writes the same files; names it. The program ends with 73.
class InUseError : public Error {
 public:
  using Error::Error;
};

// Keeps other processes away from what a file stands for, while it lives. The file says who holds the lock,
// and is removed at the end; one that a killed process left locks nothing.
class FileLock {
 public:
  // InUseError naming the process that holds the lock; UsageError when the file cannot be made.
  explicit FileLock(std::string path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace lockstep
