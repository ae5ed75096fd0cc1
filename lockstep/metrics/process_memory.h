// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::metrics {

// Memory of a process that is in RAM. Zero: not known.
struct ProcessMemory {
  std::uint64_t current_bytes = 0;
  std::uint64_t peak_bytes = 0;  // since its begin
  bool operator==(const ProcessMemory&) const = default;
};

// Of this process, from /proc.
ProcessMemory process_memory();

// From the text of /proc/PID/status.
ProcessMemory parse_process_status(std::string_view text);

}  // namespace lockstep::metrics
