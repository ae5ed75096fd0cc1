// SPDX-License-Identifier: Apache-2.0
#include "lockstep/metrics/output_file.h"

#include <gtest/gtest.h>

#include "tests/metrics/file_size_limit.h"
#include "tests/support/files.h"

namespace lockstep::metrics {
namespace {

class OutputFileTest : public ::testing::TestWithParam<OutputFile::Mode> {};

TEST_P(OutputFileTest, HasWholeLinesWhereverTheDiskWasFull) {
  for (const rlim_t room : {0, 1, 6, 7}) {
    const test::TemporaryFolder folder;
    OutputFile file(folder.path() / "log.txt", GetParam());
    EXPECT_TRUE(file.write("first\n"));
    {
      const FileSizeLimit limit(6 + room);
      EXPECT_EQ(file.write("second\n"), room >= 7);
      EXPECT_FALSE(file.write("a line for which there is no room\n"));
    }
    EXPECT_TRUE(file.write("last\n"));
    EXPECT_EQ(test::read_file(file.path()), room >= 7 ? "first\nsecond\nlast\n" : "first\nlast\n");
    EXPECT_EQ(file.dropped(), room >= 7 ? 1U : 2U);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, OutputFileTest,
                         ::testing::Values(OutputFile::Mode::append, OutputFile::Mode::replace));

}  // namespace
}  // namespace lockstep::metrics
