// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/host_memory.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/files.h"

namespace lockstep {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// A machine with 1000 MiB, of which 600 are available, and the files that a test adds.
class HostMemoryOf : public ::testing::Test {
 protected:
  HostMemoryOf() {
    write("proc/meminfo", "MemTotal:  1024000 kB\nMemFree:  1024 kB\nMemAvailable:  614400 kB\n");
  }

  void write(const std::string& path, const std::string& text) const { root_.write(path, text); }
  HostMemory read() const { return read_host_memory(root_.path()); }

 private:
  test::TemporaryFolder root_;
};

TEST_F(HostMemoryOf, NoControlGroup) {
  const HostMemory memory = read();
  EXPECT_EQ(memory.total, 1000 * kMiB);
  EXPECT_EQ(memory.usable(), 600 * kMiB);
  EXPECT_EQ(memory.most(), 1000 * kMiB);
  EXPECT_FALSE(memory.group_limit);
}

TEST_F(HostMemoryOf, Version2CountsTheTightestGroupAndWhatItHolds) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/memory.max", std::to_string(300 * kMiB));
  write("sys/fs/cgroup/outer/memory.current", std::to_string(150 * kMiB));
  write("sys/fs/cgroup/outer/memory.stat", "anon 5\ninactive_file " + std::to_string(50 * kMiB) + "\n");
  write("sys/fs/cgroup/outer/inner/memory.max", "max");
  const HostMemory memory = read();
  EXPECT_EQ(memory.group_limit, 300 * kMiB);
  EXPECT_EQ(memory.usable(), 200 * kMiB);
  EXPECT_EQ(memory.most(), 300 * kMiB);
}

TEST_F(HostMemoryOf, Version1InAContainerStandsAtTheMount) {
  write("proc/self/cgroup", "7:cpu,cpuacct:/docker/abc\n5:memory:/docker/abc\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(100 * kMiB));
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(120 * kMiB));
  EXPECT_EQ(read().usable(), 0U) << "over its limit";
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_FALSE(read().group_limit) << "a number that means none";
}

}  // namespace
}  // namespace lockstep
