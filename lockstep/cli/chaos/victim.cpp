// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/chaos/victim.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

namespace lockstep::cli {
namespace {

struct Kin {
  pid_t parent = 0;
  char state = 'X';
};

// The name of a program, which comes before these, is in parentheses and may have any in it.
Kin kin_of(const std::filesystem::path& process) {
  std::ifstream in(process / "stat");
  std::string line;
  std::getline(in, line);
  const std::size_t name_end = line.rfind(')');
  Kin kin;
  if (name_end != std::string::npos) std::istringstream(line.substr(name_end + 1)) >> kin.state >> kin.parent;
  return kin;
}

}  // namespace

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    const Kin kin = kin_of(entry.path());
    if (kin.parent == parent && kin.state != 'Z' && kin.state != 'X') children.push_back(pid);
  }
  std::ranges::sort(children);
  return children;
}

}  // namespace lockstep::cli
