// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

namespace lockstep::metrics {

// Something that took time. All events of a run count from the same instant.
struct TraceEvent {
  std::string name;      // "forward 3"
  std::string category;  // "compute"
  double begin_us = 0.0;
  double duration_us = 0.0;
  int thread = 0;
};

// The events of one rank, kept in memory until write(). Any thread may add.
class ChromeTrace {
 public:
  // Events beyond `most_events` are counted, not kept.
  ChromeTrace(int rank, std::size_t most_events);

  void add(TraceEvent event);
  std::uint64_t dropped() const;

  // For chrome://tracing and ui.perfetto.dev; replaces the file. UsageError when it cannot be written.
  void write(const std::filesystem::path& file) const;

 private:
  const int rank_;
  const std::size_t most_events_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<TraceEvent> events_;
  std::uint64_t dropped_ = 0;
};

}  // namespace lockstep::metrics
