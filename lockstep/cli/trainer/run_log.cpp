// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/trainer/run_log.h"

#include <cerrno>
#include <iostream>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "lockstep/cli/errors.h"
#include "lockstep/cli/output.h"

namespace lockstep::cli {
namespace {

// What never was a terminal is told by ENOTTY.
bool is_hung_up(int fd) {
  return ::isatty(fd) == 0 && errno == EIO;
}

}  // namespace

RunLog::RunLog(const std::filesystem::path& file, metrics::OutputFile::Mode mode) : file_(file, mode) {}

RunLog::~RunLog() {
  if (line_is_open_) std::cout << std::endl;
}

void RunLog::say(std::string_view line) {
  file_.write(fmt::format("{}\n", line));
  put(fmt::format("{}{}\n", std::exchange(line_is_open_, false) ? "\n" : "", line));
}

// The run can still be saved, and the file has what nobody sees.
void RunLog::put(std::string_view text) {
  if (lost_output_) return;
  try {
    print(std::cout, text);
  } catch (const OutputError& error) {
    if (!is_hung_up(STDOUT_FILENO)) lost_output_ = error.what();
  }
}

void RunLog::show(const metrics::Progress& progress, bool due) {
  const std::string line = metrics::progress_line(progress) + "\n";
  if (due) file_.write(line);
  const int columns = metrics::terminal_columns(STDOUT_FILENO);
  if (columns > 0) {
    line_is_open_ = true;
    put("\r\x1b[K" + metrics::progress_line(progress, columns - 1));
  } else if (due) {
    put(line);
  }
}

}  // namespace lockstep::cli
