// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/base/bytes.h"

namespace lockstep {

// A regular file, read through memory. Whoever shortens the file while it is mapped ends this process, so
// files are replaced by renaming, never rewritten in place.
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

 private:
  std::string path_;
  ConstBytes bytes_;
};

}  // namespace lockstep
