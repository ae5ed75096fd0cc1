// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/base/bytes.h"

namespace lockstep {

// A regular file whose contents are not trusted, read by position. Unlike with one that is mapped, a disk
// that fails and a file that becomes shorter meanwhile are errors, not the end of this process. DataError
// naming the file when it cannot be opened, is a symbolic link or no regular file, or what is asked for
// cannot be read.
class InputFile {
 public:
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }  // when it was opened
  void read(std::uint64_t offset, Bytes into) const;

 private:
  InputFile() = default;

  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

// A whole file; DataError also when it has more bytes than `limit`.
std::string read_text(const std::string& path, std::uint64_t limit);

}  // namespace lockstep
