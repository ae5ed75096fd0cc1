// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lockstep::data {

// Keeps other processes from writing the same output while it lives. The lock ends with the process, however
// it ends.
class OutputLock {
 public:
  // UsageError when another process holds the lock, or the file cannot be made.
  explicit OutputLock(std::string path);
  ~OutputLock();
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;

 private:
  std::string path_;
  int fd_;
};

}  // namespace lockstep::data
