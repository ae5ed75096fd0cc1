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

struct Part {
  std::string text;
  int importance = 0;  // the lowest goes first
};

// 3170.4: "3,170".
std::string grouped(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  if (!std::isfinite(value)) return digits;
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::vector<Part> parts_of(const Progress& progress) {
  std::vector<Part> parts = {{fmt::format("step {}/{}", progress.step, progress.total_steps), 7},
                             {fmt::format("loss {:.4f}", progress.loss), 6},
                             {fmt::format("grad {:.3f}", progress.grad_norm), 2},
                             {fmt::format("lr {:.2e}", progress.learning_rate), 1},
                             {grouped(progress.tokens_per_s) + " tok/s", 5}};
  if (progress.mfu) parts.push_back({fmt::format("MFU {:.1f}%", 100.0 * *progress.mfu), 3});
  parts.push_back({format_memory(progress.memory_bytes), 0});
  if (progress.seconds_left) parts.push_back({format_duration(*progress.seconds_left) + " left", 4});
  return parts;
}

std::string joined(const std::vector<Part>& parts) {
  std::string line;
  for (const Part& part : parts) line += (line.empty() ? "" : "  ") + part.text;
  return line;
}

}  // namespace

std::string progress_line(const Progress& progress) {
  return joined(parts_of(progress));
}

std::string progress_line(const Progress& progress, int columns) {
  const auto room = static_cast<std::size_t>(std::max(0, columns));
  std::vector<Part> parts = parts_of(progress);
  std::string line = joined(parts);
  while (line.size() > room && parts.size() > 1) {
    parts.erase(std::min_element(parts.begin(), parts.end(),
                                 [](const Part& a, const Part& b) { return a.importance < b.importance; }));
    line = joined(parts);
  }
  return line.substr(0, room);
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
  constexpr double kMiB = 1024.0 * 1024.0;
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
