// SPDX-License-Identifier: Apache-2.0
#include "lockstep/metrics/progress.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace lockstep::metrics {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

struct Part {
  std::string text;
  std::string brief;   // where there is little room
  int importance = 0;  // the lowest goes first
};
using Text = std::string Part::*;

// 3170.4: "3,170".
std::string grouped(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  if (!std::isfinite(value)) return digits;
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

// 0.00242: "2.4e-3".
std::string brief_power(double value) {
  std::string text = fmt::format("{:.1e}", value);
  const std::size_t exponent = text.find('e');
  if (exponent != std::string::npos && text.size() == exponent + 4 && text[exponent + 2] == '0')
    text.erase(exponent + 2, 1);
  return text;
}

// "812M", "1.2G"
std::string brief_memory(std::uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / kMiB;
  return mib < 1024.0 ? fmt::format("{:.0f}M", mib) : fmt::format("{:.1f}G", mib / 1024.0);
}

std::vector<Part> parts_of(const Progress& progress) {
  const std::string step = fmt::format("{}/{}", progress.step, progress.total_steps);
  const std::string speed = grouped(progress.tokens_per_s) + " tok/s";
  std::vector<Part> parts = {
      {"step " + step, step, 7},
      {"loss " + format_number(progress.loss, 4), "loss " + format_number(progress.loss, 3), 6},
      {"grad " + format_number(progress.grad_norm, 3), "grad " + format_number(progress.grad_norm, 2), 2},
      {fmt::format("lr {:.2e}", progress.learning_rate), "lr " + brief_power(progress.learning_rate), 1},
      {speed, speed, 5}};
  if (progress.mfu) {
    const double percent = 100.0 * *progress.mfu;
    parts.push_back({fmt::format("MFU {:.1f}%", percent), fmt::format("MFU {:.0f}%", percent), 3});
  }
  parts.push_back({format_memory(progress.memory_bytes), brief_memory(progress.memory_bytes), 0});
  if (progress.seconds_left) {
    const std::string left = format_duration(*progress.seconds_left) + " left";
    parts.push_back({left, left, 4});
  }
  return parts;
}

std::string joined(const std::vector<Part>& parts, Text text, const char* between) {
  std::string line;
  for (const Part& part : parts) line += (line.empty() ? "" : between) + part.*text;
  return line;
}

}  // namespace

std::string progress_line(const Progress& progress) {
  return joined(parts_of(progress), &Part::text, "  ");
}

std::string progress_line(const Progress& progress, int columns) {
  const auto room = static_cast<std::size_t>(std::max(0, columns));
  std::vector<Part> parts = parts_of(progress);
  std::string line = joined(parts, &Part::text, "  ");
  if (line.size() > room) line = joined(parts, &Part::text, " ");
  if (line.size() > room) line = joined(parts, &Part::brief, " ");
  while (line.size() > room && parts.size() > 1) {
    parts.erase(std::min_element(parts.begin(), parts.end(),
                                 [](const Part& a, const Part& b) { return a.importance < b.importance; }));
    line = joined(parts, &Part::brief, " ");
  }
  return line.substr(0, room);
}

std::string format_number(double value, int digits) {
  return std::isnan(value) ? "nan" : fmt::format("{:.{}f}", value, digits);
}

std::string format_duration(double seconds) {
  constexpr double kLongest = 1e9;
  if (!(seconds >= 0.0 && seconds < kLongest)) return "-:--";
  const std::int64_t whole = std::llround(seconds);
  const std::int64_t hours = whole / 3600;
  if (hours == 0) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", hours, whole / 60 % 60, whole % 60);
}

std::string format_memory(std::uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / kMiB;
  return mib < 1024.0 ? fmt::format("{:.0f} MiB", mib) : fmt::format("{:.2f} GiB", mib / 1024.0);
}

int terminal_columns(int descriptor) {
  constexpr int kUsual = 80;  // of a terminal that does not know
  winsize size{};
  if (::isatty(descriptor) == 0) return 0;
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

}  // namespace lockstep::metrics
