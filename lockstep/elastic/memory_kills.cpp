// SPDX-License-Identifier: Apache-2.0
#include "lockstep/elastic/memory_kills.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace lockstep::elastic {
namespace {

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

// "0::/path" (version 2) or "5:memory:/path" (version 1): where the files of our control group are.
std::uint64_t oom_kills_in_group(const std::string& line) {
  const std::size_t first = line.find(':');
  const std::size_t second = line.find(':', first + 1);
  if (second == std::string::npos) return 0;
  const std::string controllers = line.substr(first + 1, second - first - 1);
  const std::string path = line.substr(second + 1);
  if (controllers.empty()) return oom_kills_in("/sys/fs/cgroup" + path + "/memory.events");
  if (controllers == "memory") return oom_kills_in("/sys/fs/cgroup/memory" + path + "/memory.oom_control");
  return 0;
}

std::uint64_t count_all() {
  std::uint64_t count = oom_kills_in("/proc/vmstat");
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) count += oom_kills_in_group(line);
  return count;
}

}  // namespace

MemoryKills::MemoryKills() : count_(count_all()) {}

bool MemoryKills::happened() {
  const std::uint64_t now = count_all();
  return std::exchange(count_, now) != now;
}

}  // namespace lockstep::elastic
