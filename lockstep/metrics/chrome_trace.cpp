// SPDX-License-Identifier: Apache-2.0
#include "lockstep/metrics/chrome_trace.h"

#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace lockstep::metrics {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostWaiting = 1 << 20;  // bytes

std::string line_of(const Json& event) {
  return event.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json about_process(std::string_view what, int process, Json arguments) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"args", std::move(arguments)}};
}

// Viewers take the thread with the number of its process for the main one, and show it first.
int thread_number(int process, std::size_t thread) {
  return process + static_cast<int>(thread);
}

Json about_thread(std::string_view what, int process, std::size_t thread, Json arguments) {
  return {{"name", what},
          {"ph", "M"},
          {"pid", process},
          {"tid", thread_number(process, thread)},
          {"args", std::move(arguments)}};
}

Json complete_event(const TraceEvent& event, int process) {
  Json json = {{"name", event.name},
               {"cat", event.category},
               {"ph", "X"},
               {"ts", event.begin_us},
               {"dur", event.duration_us},
               {"pid", process},
               {"tid", thread_number(process, static_cast<std::size_t>(event.thread))}};
  for (const auto& [name, value] : event.details) json["args"][name] = value;
  return json;
}

}  // namespace

ChromeTrace::ChromeTrace(const std::filesystem::path& file, TraceProcess process, std::uint64_t most_events)
    : file_(file), process_(std::move(process)), most_events_(most_events) {
  describe_process();
}

ChromeTrace::~ChromeTrace() {
  flush();
}

void ChromeTrace::describe_process() {
  const int number = process_.number;
  put(line_of(about_process("process_name", number, {{"name", process_.name}})));
  put(line_of(about_process("process_sort_index", number, {{"sort_index", number}})));
  if (!process_.label.empty()) {
    put(line_of(about_process("process_labels", number, {{"labels", process_.label}})));
  }
  for (std::size_t thread = 0; thread < process_.threads.size(); ++thread) {
    put(line_of(about_thread("thread_name", number, thread, {{"name", process_.threads[thread]}})));
    put(line_of(about_thread("thread_sort_index", number, thread, {{"sort_index", thread}})));
  }
}

void ChromeTrace::add(const TraceEvent& event) {
  if (events_++ < most_events_) {
    put(line_of(complete_event(event, process_.number)));
  } else if (events_ == most_events_ + 1) {
    put(line_of({{"name", fmt::format("more than {} events: the rest is left out", most_events_)},
                 {"ph", "i"},
                 {"s", "p"},
                 {"ts", event.begin_us},
                 {"pid", process_.number},
                 {"tid", thread_number(process_.number, 0)}}));
  }
}

void ChromeTrace::put(const std::string& line) {
  if (!waiting_.empty()) waiting_ += kBetweenTraceEvents;
  waiting_ += line;
  if (waiting_.size() >= kMostWaiting) flush();
}

void ChromeTrace::flush() {
  file_.add(waiting_);
  waiting_.clear();
}

}  // namespace lockstep::metrics
