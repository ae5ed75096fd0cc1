// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/host_memory.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// A machine with 1000 MiB, of which 600 are available, and the files that a test adds.
class HostMemoryOf : public ::testing::Test {
 protected:
  HostMemoryOf() {
    std::string pattern = ::testing::TempDir() + "/memoryXXXXXX";
    root_ = ::mkdtemp(pattern.data());
    write("proc/meminfo", "MemTotal:  1024000 kB\nMemFree:  1024 kB\nMemAvailable:  614400 kB\n");
  }
  ~HostMemoryOf() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  std::filesystem::path root_;
};

TEST_F(HostMemoryOf, NoControlGroup) {
  const HostMemory memory = read_host_memory(root_);
  EXPECT_EQ(memory.total, 1000 * kMiB);
  EXPECT_EQ(memory.usable(), 600 * kMiB);
  EXPECT_FALSE(memory.group_limit);
}

TEST_F(HostMemoryOf, Version2CountsTheTightestGroupAndWhatItHolds) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/memory.max", std::to_string(300 * kMiB));
  write("sys/fs/cgroup/outer/memory.current", std::to_string(150 * kMiB));
  write("sys/fs/cgroup/outer/memory.stat", "anon 5\ninactive_file " + std::to_string(50 * kMiB) + "\n");
  write("sys/fs/cgroup/outer/inner/memory.max", "max");
  const HostMemory memory = read_host_memory(root_);
  EXPECT_EQ(memory.group_limit, 300 * kMiB);
  EXPECT_EQ(memory.usable(), 200 * kMiB);
}

TEST_F(HostMemoryOf, Version1InAContainerStandsAtTheMount) {
  write("proc/self/cgroup", "7:cpu,cpuacct:/docker/abc\n5:memory:/docker/abc\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(100 * kMiB));
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(120 * kMiB));
  EXPECT_EQ(read_host_memory(root_).usable(), 0U) << "over its limit";
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_FALSE(read_host_memory(root_).group_limit) << "a number that means none";
}

}  // namespace
}  // namespace lockstep::cli
