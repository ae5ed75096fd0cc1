// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/metrics/output_file.h"
#include "lockstep/metrics/progress.h"

namespace lockstep::cli {

// What a run says, on standard output and in a file that has plain lines only. UsageError when the file
// cannot be opened; lines that it has no room for are lost.
class RunLog {
 public:
  RunLog(const std::filesystem::path& file, metrics::OutputFile::Mode mode);

  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;
  ~RunLog();  // ends the line that is open, so that an error gets its own

  // A line of its own, given without its end.
  void say(std::string_view line);

  // Where the run is. A terminal shows it until the next one takes its place; anything else gets the line
  // when it is `due`, like the file.
  void show(const metrics::Progress& progress, bool due);

  // Why standard output gets no more lines, unless it is a terminal that has hung up.
  const std::optional<std::string>& lost_output() const { return lost_output_; }

 private:
  void put(std::string_view text);

  metrics::OutputFile file_;
  std::optional<std::string> lost_output_;
  bool line_is_open_ = false;  // on the terminal
};

}  // namespace lockstep::cli
