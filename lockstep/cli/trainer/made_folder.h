// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace lockstep::cli {

// A folder that is made, with those above it, unless it is there. Those that were made go at the end if
// nothing has come into them, so that what is refused leaves nothing behind.
class MadeFolder {
 public:
  // UsageError when it cannot be made.
  explicit MadeFolder(std::filesystem::path path);
  ~MadeFolder();
  MadeFolder(const MadeFolder&) = delete;
  MadeFolder& operator=(const MadeFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }  // as it was given

 private:
  std::filesystem::path path_;
  std::filesystem::path absolute_;
  std::filesystem::path uppermost_;  // that was made; empty: none was
};

}  // namespace lockstep::cli
