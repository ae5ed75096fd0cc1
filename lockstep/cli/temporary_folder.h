// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace lockstep::cli {

// The folder for temporary files, from TMPDIR. UsageError when it is none.
std::filesystem::path temporary_files();

// A new folder below `where` that only this user can enter; it goes with the object, and all that is in it.
class TemporaryFolder {
 public:
  // UsageError when none can be made.
  explicit TemporaryFolder(const std::filesystem::path& where = temporary_files());
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace lockstep::cli
