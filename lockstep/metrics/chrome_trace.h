// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/metrics/trace_file.h"

namespace lockstep::metrics {

// Something that took time. All events of a run count from the same instant.
struct TraceEvent {
  std::string name;      // "forward 3"
  std::string category;  // "compute"
  double begin_us = 0.0;
  double duration_us = 0.0;
  int thread = 0;
  std::vector<std::pair<std::string, std::int64_t>> details = {};
};

// Whose events they are, as viewers show it.
struct TraceProcess {
  int number = 0;                         // shown in the order of these
  std::string name;                       // "stage 1, rank 3"
  std::string label = {};                 // what is said beside the name; empty: nothing
  std::vector<std::string> threads = {};  // by number, and shown in this order
};

// The events of one process, in a file that is written as they come. One thread at a time.
class ChromeTrace {
 public:
  // The file has the first `most_events`, and says when there were more. UsageError when it cannot be opened.
  ChromeTrace(const std::filesystem::path& file, TraceProcess process, std::uint64_t most_events);
  ~ChromeTrace();
  ChromeTrace(const ChromeTrace&) = delete;
  ChromeTrace& operator=(const ChromeTrace&) = delete;

  void add(const TraceEvent& event);
  // What was added until now is in the file, whatever becomes of this process.
  void flush();

 private:
  void put(const std::string& line);
  void describe_process();

  TraceFile file_;
  const TraceProcess process_;
  const std::uint64_t most_events_;
  std::uint64_t events_ = 0;  // that were added
  std::string waiting_;       // to be written
};

}  // namespace lockstep::metrics
