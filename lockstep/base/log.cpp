// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/log.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "lockstep/base/deadline.h"
#include "lockstep/base/stderr_sink.h"

namespace lockstep::log {
namespace {

constexpr const char* kPatternPlain = "%H:%M:%S.%e %L %v";

// The one process-wide object: a process has one standard error.
spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("lockstep", std::make_shared<StderrSink>());
    made->set_pattern(kPatternPlain);
    made->set_error_handler([](const std::string&) {});
    return made;
  }();
  return *instance;
}

}  // namespace

void set_level(Level level) {
  switch (level) {
    case Level::debug:
      return logger().set_level(spdlog::level::debug);
    case Level::info:
      return logger().set_level(spdlog::level::info);
    case Level::warning:
      return logger().set_level(spdlog::level::warn);
    case Level::error:
      return logger().set_level(spdlog::level::err);
  }
}

void set_rank(int rank) {
  logger().set_pattern(rank < 0 ? kPatternPlain : fmt::format("%H:%M:%S.%e rank {} %L %v", rank));
}

void debug(std::string_view message) {
  logger().debug(message);
}
void info(std::string_view message) {
  logger().info(message);
}
void warning(std::string_view message) {
  logger().warn(message);
}
void error(std::string_view message) {
  logger().error(message);
}

bool RateLimit::allow(std::uint64_t& suppressed) {
  const std::int64_t now = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
  std::int64_t next = next_ns_.load(std::memory_order_relaxed);
  const std::int64_t after =
      now + std::min(interval_.count(), std::numeric_limits<std::int64_t>::max() - now);
  if (now < next || !next_ns_.compare_exchange_strong(next, after)) {
    suppressed_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  suppressed = suppressed_.exchange(0, std::memory_order_relaxed);
  return true;
}

void warning(RateLimit& limit, std::string_view message) {
  std::uint64_t suppressed = 0;
  if (!limit.allow(suppressed)) return;
  warning(fmt::format("{} ({} more since the last such line)", message, suppressed));
}

}  // namespace lockstep::log
