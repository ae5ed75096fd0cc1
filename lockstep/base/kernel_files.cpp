// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/kernel_files.h"

#include <charconv>
#include <fstream>

namespace lockstep {
namespace {

using std::filesystem::path;

// In /proc/self/cgroup a line is "number:controllers:/folder"; `key` is what stands before the folder,
// without the number.
std::vector<path> groups_of(const path& root, const std::string& key, const path& mount) {
  std::ifstream in(root / "proc/self/cgroup");
  std::vector<path> folders = {mount};
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.compare(colon, key.size(), key) != 0) continue;
    path folder = mount;
    for (const path& part : path(line.substr(colon + key.size())).relative_path()) {
      folder /= part;
      folders.push_back(folder);
    }
  }
  return folders;
}

}  // namespace

std::string first_line(const path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::optional<std::uint64_t> number_in(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<std::uint64_t> number_after(const path& path, const std::string& name) {
  std::ifstream in(path);
  std::string word;
  std::string rest;
  while (in >> word && std::getline(in >> std::ws, rest)) {
    if (word == name) return number_in(rest);
  }
  return std::nullopt;
}

std::vector<path> control_groups(const path& root) {
  return groups_of(root, "::", root / "sys/fs/cgroup");
}

std::vector<path> memory_control_groups(const path& root) {
  return groups_of(root, ":memory:", root / "sys/fs/cgroup/memory");
}

}  // namespace lockstep
