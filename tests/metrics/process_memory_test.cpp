// SPDX-License-Identifier: Apache-2.0
#include "lockstep/metrics/process_memory.h"

#include <vector>

#include <gtest/gtest.h>

namespace lockstep::metrics {
namespace {

TEST(ParseProcessStatus, ReadsTheTwoLines) {
  EXPECT_EQ(parse_process_status("Name:\tx\nVmHWM:\t    2184 kB\nVmRSS:\t    1000 kB\n"),
            (ProcessMemory{1000 * 1024, 2184 * 1024}));
  EXPECT_EQ(parse_process_status(""), ProcessMemory{});
  EXPECT_EQ(parse_process_status("VmRSS:"), ProcessMemory{});
  EXPECT_EQ(parse_process_status("VmRSS:\t none"), ProcessMemory{});
}

TEST(ProcessMemory, FollowsWhatIsTouched) {
  constexpr std::size_t kBytes = 64 << 20;
  const ProcessMemory before = process_memory();
  ASSERT_GT(before.current_bytes, 0u);
  {
    const std::vector<char> touched(kBytes, 1);
    EXPECT_GE(process_memory().current_bytes, before.current_bytes + kBytes / 2) << touched[kBytes / 2];
  }
  EXPECT_GE(process_memory().peak_bytes, before.current_bytes + kBytes / 2);
}

}  // namespace
}  // namespace lockstep::metrics
