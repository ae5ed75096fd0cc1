// SPDX-License-Identifier: Apache-2.0
//
// A writer of checkpoints that dies, stops or fails at every failpoint: the newest checkpoint is the old one
// or the new one, never none and never a bad one.
#include <csignal>

#include <sys/wait.h>

#include "lockstep/base/failpoint_table.h"

#include "tests/fault/broken_writer.h"
#include "tests/support/failpoints.h"

namespace lockstep::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kRows = 300;

// Beside the old checkpoint, and in its place.
constexpr int kSteps[] = {20, 10};

class CheckpointFailpoint : public BrokenWriter, public ::testing::WithParamInterface<std::string> {
 protected:
  CheckpointFailpoint() : BrokenWriter(kRows) {}

  // False for what happens only when a step is replaced.
  static bool is_passed(int step) {
    return step == kOldStep || !GetParam().starts_with("checkpoint.replace.");
  }
  // The new checkpoint is one from here on, though its writer may not know yet.
  static bool is_committed() {
    return failpoint::index_of(GetParam()) >= failpoint::index_of("checkpoint.folder.renamed");
  }

  Program start(const std::string& action, int step) const {
    begin_anew();
    return Program(arguments(store(), step, kNew),
                   {{"LOCKSTEP_FAILPOINTS", GetParam() + "@hit=1:" + action}});
  }
  // Runs the writer, which meets the point unless it is not passed.
  Finished save(const std::string& action, int step) const {
    const Finished finished = start(action, step).finish();
    const bool was_met = finished.error_output.find("failpoint " + GetParam()) != std::string::npos;
    EXPECT_EQ(was_met, is_passed(step)) << finished.error_output;
    return finished;
  }
};

TEST_P(CheckpointFailpoint, AKilledWriterLeavesTheOldOneOrTheNewOne) {
  for (const int step : kSteps) {
    SCOPED_TRACE(step);
    EXPECT_EQ(save("kill", step).exit_code, is_passed(step) ? kKilled : 0);
    EXPECT_EQ(newest(), is_committed() || !is_passed(step) ? kNew : kOld);
    expect_a_later_save();
  }
}

TEST_P(CheckpointFailpoint, AWriterThatFailsLeavesTheOldOneAndNothingElse) {
  for (const int step : kSteps) {
    for (const std::string action : {"throw", "enospc", "eio"}) {
      SCOPED_TRACE(action + " at step " + std::to_string(step));
      const Finished finished = save(action, step);
      if (finished.exit_code == 0) {
        EXPECT_TRUE(is_committed() || !is_passed(step));
        EXPECT_EQ(newest(), kNew);
        expect_a_later_save();
      } else {
        EXPECT_EQ(finished.exit_code, 1);
        EXPECT_THAT(finished.error_output, AnyOf(HasSubstr("was told to throw"), HasSubstr("No space left"),
                                                 HasSubstr("Input/output error")));
        EXPECT_EQ(newest(), kOld);
        EXPECT_THAT(names(), ::testing::UnorderedElementsAre("step-10", "latest"));
      }
    }
  }
}

TEST_P(CheckpointFailpoint, AStoppedWriterGoesOn) {
  Program writer = start("stop", kOldStep);
  siginfo_t found{};
  EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(writer.pid()), &found, WSTOPPED | WEXITED | WNOWAIT), 0);
  ASSERT_EQ(found.si_code, CLD_STOPPED);
  EXPECT_EQ(newest(), is_committed() ? kNew : kOld);
  writer.signal(SIGCONT);
  const Finished finished = writer.finish();
  EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
  EXPECT_EQ(newest(), kNew);
}

INSTANTIATE_TEST_SUITE_P(All, CheckpointFailpoint, ::testing::ValuesIn(test::swept_failpoints("checkpoint.")),
                         [](const auto& test) { return test::test_name_of(test.param); });

}  // namespace
}  // namespace lockstep::testing
