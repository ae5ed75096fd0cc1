// SPDX-License-Identifier: Apache-2.0
//
// The files in which the kernel tells of memory and control groups. One text is the content of all of them:
// each reader finds its lines in it.
#include <algorithm>
#include <filesystem>

#include "lockstep/base/host_memory.h"
#include "lockstep/base/kernel_files.h"
#include "lockstep/elastic/memory_kills.h"
#include "lockstep/metrics/process_memory.h"

#include "tests/fuzz/fuzz.h"
#include "tests/support/files.h"

using namespace lockstep;

namespace {

// /proc and /sys of a machine, with control groups of both versions.
class Machine {
 public:
  Machine() {
    for (const char* file : {"proc/meminfo", "proc/vmstat", "proc/self/cgroup"}) link(file);
    for (const char* group : {"sys/fs/cgroup/", "sys/fs/cgroup/group/"}) {
      for (const char* file : {"memory.max", "memory.current", "memory.stat", "memory.events"}) {
        link(group + std::string(file));
      }
    }
    for (const char* group : {"sys/fs/cgroup/memory/", "sys/fs/cgroup/memory/group/"}) {
      for (const char* file :
           {"memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat", "memory.oom_control"}) {
        link(group + std::string(file));
      }
    }
  }

  void say(const std::string& text) const { folder_.write("text", text); }
  const std::filesystem::path& root() const { return folder_.path(); }

 private:
  void link(const std::string& name) const {
    const std::filesystem::path file = root() / name;
    std::filesystem::create_directories(file.parent_path());
    std::filesystem::create_symlink(root() / "text", file);
  }

  test::TemporaryFolder folder_;
};

void read_groups(const std::filesystem::path& root) {
  const auto are_below = [](const std::vector<std::filesystem::path>& groups,
                            const std::filesystem::path& mount) {
    return !groups.empty() && groups.front() == mount && std::ranges::all_of(groups, [&](const auto& group) {
      return group.string().starts_with(mount.string());
    });
  };
  const std::filesystem::path mount = root / "sys/fs/cgroup";
  fuzz::require(are_below(control_groups(root), mount), "groups are below their mount");
  fuzz::require(are_below(memory_control_groups(root), mount / "memory"), "those of version 1 as well");
}

void read_memory(const std::filesystem::path& root) {
  const HostMemory memory = read_host_memory(root);
  fuzz::require(memory.usable() <= memory.available, "no more is usable than is there");
  fuzz::require(memory.group_limit.has_value() == memory.group_room.has_value(), "a limit leaves room");
  fuzz::require(!memory.group_limit || *memory.group_limit <= memory.total, "a limit is below what there is");
  fuzz::require(!memory.group_room || *memory.group_room <= *memory.group_limit, "room is within its limit");
}

void count_kills(const std::filesystem::path& root) {
  elastic::MemoryKills kills(root / "proc", root / "sys/fs/cgroup");
  const bool none = kills.take(Clock::now()) == elastic::MemoryKills::Whose::none;
  fuzz::require(none, "what was counted before is nobody's now");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Machine machine;
  const std::string text(fuzz::Input(data, size).rest());
  machine.say(text);
  read_groups(machine.root());
  read_memory(machine.root());
  count_kills(machine.root());
  metrics::parse_process_status(text);
  return 0;
}
