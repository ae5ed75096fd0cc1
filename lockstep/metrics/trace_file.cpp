// SPDX-License-Identifier: Apache-2.0
#include "lockstep/metrics/trace_file.h"

#include <cerrno>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"

namespace lockstep::metrics {
namespace {

constexpr std::string_view kEnd = "\n]\n";

// Only the last event of a file has nothing behind it, and only it can be cut off, be it at a comma of its
// own.
bool is_event(const std::string& line, bool has_more_behind) {
  return line.starts_with('{') && (has_more_behind || nlohmann::json::accept(line));
}

}  // namespace

TraceFile::TraceFile(const std::filesystem::path& file) : output_(file, OutputFile::Mode::replace) {
  output_.write(kBeginOfTrace);
}

TraceFile::~TraceFile() {
  output_.write(kEnd);
}

void TraceFile::add(std::string_view events) {
  if (events.empty()) return;
  std::string text(is_empty_ ? std::string_view() : kBetweenTraceEvents);
  text += events;
  if (output_.write(text)) is_empty_ = false;
}

TraceReader::TraceReader(const std::filesystem::path& file) : input_(file) {
  if (!input_) {
    throw UsageError(
        fmt::format("cannot read {}: {}", file.string(), std::generic_category().message(errno)));
  }
}

std::string TraceReader::next(std::size_t bytes) {
  std::string events;
  for (std::string line; events.size() < bytes && std::getline(input_, line);) {
    const bool has_more_behind = line.ends_with(',') && !input_.eof();
    if (has_more_behind) line.pop_back();
    if (!is_event(line, has_more_behind)) continue;
    if (!events.empty()) events += kBetweenTraceEvents;
    events += line;
  }
  return events;
}

}  // namespace lockstep::metrics
