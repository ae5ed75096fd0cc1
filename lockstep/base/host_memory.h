// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace lockstep {

// The memory of this machine as this process may use it, in bytes.
struct HostMemory {
  std::uint64_t total = 0;
  std::uint64_t available = 0;  // what the kernel can give without swapping; as `total` where it does not say
  std::optional<std::uint64_t> group_limit;  // the least limit of the control groups this process is in
  std::optional<std::uint64_t> group_room;   // the least that any of them has left below its limit

  // What new allocations may take together.
  std::uint64_t usable() const;
  // What this process could have if it were alone; 0: not known, as where /proc is hidden.
  std::uint64_t most() const;
};

// From /proc and /sys below `root`, which only tests change. Knows control groups of versions 1 and 2.
HostMemory read_host_memory(const std::filesystem::path& root = "/");

}  // namespace lockstep
