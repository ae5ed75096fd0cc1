// SPDX-License-Identifier: Apache-2.0
#include "lockstep/metrics/process_memory.h"

#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

namespace lockstep::metrics {
namespace {

// The number of a line "VmRSS:     2184 kB".
std::uint64_t bytes_of_line(std::string_view text, std::string_view label) {
  const std::size_t line = text.find(label);
  if (line == text.npos) return 0;
  const std::size_t digits = text.find_first_not_of(" \t", line + label.size());
  if (digits == text.npos) return 0;
  std::uint64_t kib = 0;
  std::from_chars(text.data() + digits, text.data() + text.size(), kib);
  return kib * 1024;
}

}  // namespace

ProcessMemory parse_process_status(std::string_view text) {
  return {bytes_of_line(text, "VmRSS:"), bytes_of_line(text, "VmHWM:")};
}

ProcessMemory process_memory() {
  std::ifstream file("/proc/self/status");
  return parse_process_status(std::string{std::istreambuf_iterator<char>(file), {}});
}

}  // namespace lockstep::metrics
