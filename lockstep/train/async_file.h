// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "lockstep/base/bytes.h"

namespace lockstep::train {

// Memory on disk: a file without a name, gone when this is, read and written in the background. By io_uring
// where the kernel has it, by a thread elsewhere. Calls come from one thread at a time.
class AsyncFile {
 public:
  enum class Means { io_uring, thread };

  // Room for `bytes` in the folder, all of it at once. UsageError when there is no such folder or no room.
  // The means is the best there is, unless it is given.
  AsyncFile(const std::string& folder, std::uint64_t bytes);
  AsyncFile(const std::string& folder, std::uint64_t bytes, Means means);
  AsyncFile(const AsyncFile&) = delete;
  AsyncFile& operator=(const AsyncFile&) = delete;
  ~AsyncFile();  // when everything under way has ended

  Means means() const;

  // Start an operation; its memory must stay until it has been waited for. What is read has been waited for
  // when it was written.
  using Ticket = std::uint64_t;
  Ticket read(std::uint64_t offset, Bytes to);
  Ticket write(std::uint64_t offset, ConstBytes from);

  // Returns when the operation has ended. DataError when the disk has failed.
  void wait(Ticket ticket);

  class Queue;  // of operations under way

 private:
  int fd_ = -1;
  std::unique_ptr<Queue> queue_;
};

std::string_view name_of(AsyncFile::Means means);

}  // namespace lockstep::train
