// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/base/bytes.h"

namespace lockstep {

// A regular file, read through memory. Reading what is no longer there, because somebody has shortened the
// file meanwhile, ends this process: call require_whole() before.
class MappedFile {
 public:
  // UsageError when the file cannot be opened or is not a regular file.
  explicit MappedFile(std::string path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::string& path() const { return path_; }
  ConstBytes bytes() const { return bytes_; }  // live as long as this object
  std::size_t size() const { return bytes_.size(); }
  // DataError when the file has become shorter since it was mapped.
  void require_whole() const;

 private:
  MappedFile() = default;

  std::string path_;
  int fd_ = -1;
  ConstBytes bytes_;
};

}  // namespace lockstep
