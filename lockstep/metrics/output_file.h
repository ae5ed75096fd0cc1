// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace lockstep::metrics {

// A file that is written from front to back without a buffer of ours. UsageError, with path and reason, when
// it cannot be opened or written.
class OutputFile {
 public:
  enum class Mode { append, replace };

  // Makes the folders above the file.
  OutputFile(std::filesystem::path path, Mode mode);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace lockstep::metrics
