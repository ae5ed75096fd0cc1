// SPDX-License-Identifier: Apache-2.0
//
// Files for chrome://tracing and ui.perfetto.dev: a JSON array with one event in each line. Lines of several
// files can be put together in one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "lockstep/metrics/output_file.h"

namespace lockstep::metrics {

inline constexpr std::string_view kBeginOfTrace =
    "[\n";  // an event follows, or an empty line if there is none
inline constexpr std::string_view kBetweenTraceEvents = ",\n";

// Written from front to back. That of a process that is killed lacks the closing bracket; viewers do without.
class TraceFile {
 public:
  // Replaces the file. UsageError when it cannot be opened.
  explicit TraceFile(const std::filesystem::path& file);
  ~TraceFile();  // closes the array
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // One event or several, each in its line, with kBetweenTraceEvents between them. On a full disk all of
  // these or none, with a warning.
  void add(std::string_view events);
  bool is_whole() const { return output_.dropped() == 0; }  // nothing was left out

 private:
  OutputFile output_;
  bool is_empty_ = true;
};

// Reads such a file back, also one without its end: an event that was cut off is left out.
class TraceReader {
 public:
  // UsageError when the file cannot be opened.
  explicit TraceReader(const std::filesystem::path& file);

  // The next events, as add() takes them: until there are `bytes` of them, and at least one. Empty: no more.
  std::string next(std::size_t bytes);

 private:
  std::ifstream input_;
};

}  // namespace lockstep::metrics
