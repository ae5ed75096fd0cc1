// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/host_memory.h"

#include <algorithm>
#include <string>

#include "lockstep/base/kernel_files.h"

namespace lockstep {
namespace {

using std::filesystem::path;

// How the two versions of control groups name the same things.
struct Names {
  const char* limit;
  const char* used;
  const char* reclaimable;  // in memory.stat: counted as used, but given up when memory is short
};
constexpr Names kVersion2 = {"memory.max", "memory.current", "inactive_file"};
constexpr Names kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

void lower(std::optional<std::uint64_t>& least, std::uint64_t value) {
  least = least ? std::min(*least, value) : value;
}

void read_group(const path& folder, const Names& names, HostMemory& memory) {
  const auto limit = number_in(first_line(folder / names.limit));
  // Version 1 says "no limit" with a number that no machine has.
  if (!limit || *limit > memory.total) return;
  const std::uint64_t used = number_in(first_line(folder / names.used)).value_or(0);
  const std::uint64_t reclaimable = number_after(folder / "memory.stat", names.reclaimable).value_or(0);
  const std::uint64_t held = used - std::min(used, reclaimable);
  lower(memory.group_limit, *limit);
  lower(memory.group_room, *limit - std::min(*limit, held));
}

}  // namespace

std::uint64_t HostMemory::usable() const {
  return std::min(available, group_room.value_or(available));
}

std::uint64_t HostMemory::most() const {
  return std::min(total, group_limit.value_or(total));
}

HostMemory read_host_memory(const path& root) {
  const path meminfo = root / "proc/meminfo";
  HostMemory memory;
  memory.total = number_after(meminfo, "MemTotal:").value_or(0) * 1024;
  const auto available = number_after(meminfo, "MemAvailable:");
  memory.available = available ? *available * 1024 : memory.total;
  for (const path& folder : control_groups(root)) read_group(folder, kVersion2, memory);
  for (const path& folder : memory_control_groups(root)) read_group(folder, kVersion1, memory);
  return memory;
}

}  // namespace lockstep
