// SPDX-License-Identifier: Apache-2.0
#include "lockstep/metrics/chrome_trace.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/metrics/output_file.h"

namespace lockstep::metrics {
namespace {

using Json = nlohmann::ordered_json;

std::string process_name(int rank) {
  return Json{{"name", "process_name"},
              {"ph", "M"},
              {"pid", rank},
              {"args", {{"name", fmt::format("rank {}", rank)}}}}
      .dump();
}

std::string complete_event(const TraceEvent& event, int rank) {
  return Json{{"name", event.name},   {"cat", event.category},    {"ph", "X"},
              {"ts", event.begin_us}, {"dur", event.duration_us}, {"pid", rank},
              {"tid", event.thread}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

ChromeTrace::ChromeTrace(int rank, std::size_t most_events) : rank_(rank), most_events_(most_events) {}

void ChromeTrace::add(TraceEvent event) {
  const std::lock_guard lock(mutex_);
  if (events_.size() < most_events_) {
    events_.push_back(std::move(event));
  } else {
    ++dropped_;
  }
}

std::uint64_t ChromeTrace::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void ChromeTrace::write(const std::filesystem::path& file) const {
  constexpr std::size_t kChunk = 1 << 20;
  const std::lock_guard lock(mutex_);
  OutputFile output(file, OutputFile::Mode::replace);
  std::string text = "{\"traceEvents\":[\n" + process_name(rank_);
  for (const TraceEvent& event : events_) {
    text += ",\n" + complete_event(event, rank_);
    if (text.size() >= kChunk) output.write(std::exchange(text, {}));
  }
  output.write(text + fmt::format("\n],\"otherData\":{{\"dropped_events\":{}}}}}\n", dropped_));
  if (output.dropped() > 0) throw UsageError(fmt::format("cannot write all of {}", file.string()));
}

}  // namespace lockstep::metrics
