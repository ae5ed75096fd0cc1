// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace lockstep::log {

enum class Level { debug, info, warning, error };

// Lines go to standard error as "12:34:56.789 rank 3 W message"; a full or closed stream loses lines, never
// the run.
void set_level(Level level);
void set_rank(int rank);  // shown in every following line of this process; negative: not shown

void debug(std::string_view message);
void info(std::string_view message);
void warning(std::string_view message);
void error(std::string_view message);

// Lets one event through per interval and counts the rest; for what a stranger can provoke at will.
// Thread-safe.
class RateLimit {
 public:
  explicit RateLimit(std::chrono::nanoseconds interval) : interval_(interval) {}

  // True when a line may be written now; `suppressed` is how many were refused since the last one.
  bool allow(std::uint64_t& suppressed);

 private:
  std::chrono::nanoseconds interval_;
  std::atomic<std::int64_t> next_ns_{0};
  std::atomic<std::uint64_t> suppressed_{0};
};

// When the limit allows it, followed by how many were left out since the last one.
void warning(RateLimit& limit, std::string_view message);

}  // namespace lockstep::log
