// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/memory_kills.h"

#include <cstdlib>
#include <fstream>
#include <system_error>

namespace lockstep::elastic {
namespace {

constexpr std::chrono::seconds kInterval{1};
// A process that was killed may need so long to end: its memory is given back first.
constexpr std::chrono::seconds kMoment{5};

// The number after the word in a file of lines such as "oom_kill 3"; 0 when there is none.
std::uint64_t oom_kills_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string name;
  std::string value;
  while (in >> name >> value) {
    if (name == "oom_kill") return std::strtoull(value.c_str(), nullptr, 10);
  }
  return 0;
}

// From "0::/path" (version 2) or "5:memory:/path" (version 1): where our control group counts; empty: it is
// not said.
std::filesystem::path group_file(const std::filesystem::path& proc, const std::filesystem::path& groups) {
  std::error_code cannot_see;  // whatever is in the way: then it is not there for us
  std::ifstream lines(proc / "self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers == "memory") return groups.string() + "/memory" + path + "/memory.oom_control";
    std::filesystem::path unified = groups.string() + path + "/memory.events";
    if (controllers.empty() && std::filesystem::exists(unified, cannot_see)) return unified;
  }
  return {};
}

}  // namespace

void MemoryKills::Count::see(std::uint64_t count, Clock::time_point now) {
  if (now - moved > kMoment) recent = 0;
  if (count > seen) {
    recent += count - seen;
    moved = now;
  }
  seen = count;
}

bool MemoryKills::Count::take() {
  if (recent == 0) return false;
  --recent;
  return true;
}

MemoryKills::MemoryKills(const std::filesystem::path& proc, const std::filesystem::path& groups)
    : machine_file_(proc / "vmstat"), group_file_(group_file(proc, groups)), next_look_(Clock::now()) {
  machine_.seen = oom_kills_in(machine_file_);
  group_.seen = oom_kills_in(group_file_);
}

void MemoryKills::look(Clock::time_point now) {
  if (now >= next_look_) count(now);
}

void MemoryKills::count(Clock::time_point now) {
  machine_.see(oom_kills_in(machine_file_), now);
  group_.see(oom_kills_in(group_file_), now);
  next_look_ = now + kInterval;
}

MemoryKills::Whose MemoryKills::take(Clock::time_point now) {
  count(now);
  const bool was_on_machine = machine_.take();  // one of the group counts there as well
  if (group_.take()) return Whose::group;
  return was_on_machine ? Whose::machine : Whose::none;
}

}  // namespace lockstep::elastic
