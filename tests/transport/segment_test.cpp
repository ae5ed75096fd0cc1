// SPDX-License-Identifier: Apache-2.0
#include "lockstep/transport/shm/segment.h"

#include <cstddef>
#include <string>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/host_memory.h"

#include "tests/support/error_of.h"
#include "tests/support/files.h"

namespace lockstep::transport {
namespace {

constexpr std::size_t kMiB = 1 << 20;

// A container with 300 MiB, of which programs hold 100 and files of which nobody has need 150.
class SegmentInAContainer : public testing::Test {
 protected:
  SegmentInAContainer() {
    root_.write("proc/meminfo", "MemTotal:  1024000 kB\nMemAvailable:  614400 kB\n");
    root_.write("proc/self/cgroup", "0::/\n");
    root_.write("sys/fs/cgroup/memory.max", std::to_string(300 * kMiB));
    root_.write("sys/fs/cgroup/memory.current", std::to_string(250 * kMiB));
    root_.write("sys/fs/cgroup/memory.stat", "inactive_file " + std::to_string(150 * kMiB) + "\n");
  }
  HostMemory memory() const { return read_host_memory(root_.path()); }

 private:
  test::TemporaryFolder root_;
};

TEST_F(SegmentInAContainer, FindsRoomWhereTheKernelGivesFilesUp) {
  EXPECT_NO_THROW(require_room(200 * kMiB, memory()));
}

TEST_F(SegmentInAContainer, SaysWhatIsLeft) {
  EXPECT_EQ(test::error_of<UsageError>([&] { require_room(200 * kMiB + 1, memory()); }),
            "cannot get 209715201 bytes of shared memory: the control group of this process has 209715200 "
            "bytes left");
  EXPECT_EQ(test::error_of<UsageError>([&] { require_room(601 * kMiB, memory()); }),
            "cannot get 630194176 bytes of shared memory: this host has 629145600 bytes of memory available");
}

TEST(Segment, FindsRoomOnAHostThatHidesWhatItHas) {
  const test::TemporaryFolder root;
  EXPECT_NO_THROW(require_room(kMiB, read_host_memory(root.path())));
}

}  // namespace
}  // namespace lockstep::transport
