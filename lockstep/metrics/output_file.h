// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace lockstep::metrics {

// A file that is written from front to back without a buffer of ours. Nothing but people and measurements
// reads it: what cannot be written (on a full disk) is left out, with a warning the first time, and training
// goes on.
class OutputFile {
 public:
  enum class Mode { append, replace };

  // Makes the folders above the file. UsageError, with path and reason, when it cannot be opened.
  OutputFile(std::filesystem::path path, Mode mode);
  ~OutputFile();  // tells how often something was left out
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // All of it or nothing of it: false.
  bool write(std::string_view bytes);
  std::uint64_t dropped() const { return dropped_; }  // calls that wrote nothing
  const std::filesystem::path& path() const { return path_; }

 private:
  bool take_back();  // a part of a line, which would spoil the next one

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t dropped_ = 0;
  std::int64_t torn_ = 0;  // bytes at the end that are a part of a write
};

}  // namespace lockstep::metrics
