// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/trainer/run_log.h"

#include <iostream>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "lockstep/cli/output.h"

namespace lockstep::cli {

RunLog::RunLog(const std::filesystem::path& file, metrics::OutputFile::Mode mode) : file_(file, mode) {}

RunLog::~RunLog() {
  if (line_is_open_) std::cout << std::endl;
}

void RunLog::say(std::string_view line) {
  file_.write(fmt::format("{}\n", line));
  print(std::cout, fmt::format("{}{}\n", std::exchange(line_is_open_, false) ? "\n" : "", line));
}

void RunLog::show(const metrics::Progress& progress, bool due) {
  const std::string line = metrics::progress_line(progress) + "\n";
  if (due) file_.write(line);
  const int columns = metrics::terminal_columns(STDOUT_FILENO);
  if (columns > 0) {
    line_is_open_ = true;
    print(std::cout, "\r\x1b[K" + metrics::progress_line(progress, columns - 1));
  } else if (due) {
    print(std::cout, line);
  }
}

}  // namespace lockstep::cli
