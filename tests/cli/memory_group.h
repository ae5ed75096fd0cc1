// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

namespace lockstep::testing {

// A control group whose processes get no more memory than that together: the kernel kills one that asks.
// Needs root.
class MemoryGroup {
 public:
  explicit MemoryGroup(long bytes = kNextToNothing) {
    const std::filesystem::path first_version = "/sys/fs/cgroup/memory";
    const bool is_first = std::filesystem::exists(first_version);
    folder_ = (is_first ? first_version : "/sys/fs/cgroup") / fmt::format("lockstep-test-{}", ::getpid());
    std::filesystem::create_directory(folder_);
    write(is_first ? "memory.limit_in_bytes" : "memory.max", bytes);
  }
  // Its processes must have ended.
  ~MemoryGroup() { ::rmdir(folder_.c_str()); }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  // What it has already it keeps.
  void take(pid_t process) const { write(kProcesses, process); }

  // A process that writes its number there is one of them.
  std::string processes() const { return folder_ / kProcesses; }

 private:
  static constexpr long kNextToNothing = 65536;
  static constexpr const char* kProcesses = "cgroup.procs";

  void write(const std::string& name, long value) const {
    std::ofstream file(folder_ / name);
    if (!(file << value << std::flush)) {
      throw std::system_error(errno, std::generic_category(), (folder_ / name).string());
    }
  }

  std::filesystem::path folder_;
};

}  // namespace lockstep::testing
