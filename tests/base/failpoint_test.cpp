// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/failpoint.h"

#include <array>
#include <csignal>
#include <filesystem>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/base/error.h"

#include "tests/support/error_of.h"
#include "tests/support/files.h"
#include "tests/support/scoped_variable.h"

namespace lockstep::failpoint {
namespace {

using test::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Any two points; where they really are does not matter here.
void pass_block() {
  LOCKSTEP_FAILPOINT("checkpoint.shard.block");
}
void pass_meeting() {
  LOCKSTEP_FAILPOINT("rendezvous.before_meet");
}

// How often passing it `times` times throws.
int failures_of(void (*pass_point)(), int times) {
  int failures = 0;
  for (int i = 0; i < times; ++i) {
    try {
      pass_point();
    } catch (const InternalError&) {
      ++failures;
    }
  }
  return failures;
}

// What waitpid says of a child that passes the point, with WUNTRACED; the child has gone when this returns.
int status_after_passing(const std::string& specification) {
  const pid_t child = ::fork();
  if (child == 0) {
    arm(specification);
    pass_block();
    std::_Exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  if (WIFSTOPPED(status)) {
    ::kill(child, SIGCONT);
    int end = -1;
    ::waitpid(child, &end, 0);
    EXPECT_EQ(end, 0) << "it goes on after SIGCONT";
  }
  return status;
}

class Failpoint : public ::testing::Test {
 protected:
  ~Failpoint() override {
    arm("");
    set_rank(-1);
    set_step(-1);
  }
};

TEST_F(Failpoint, NothingHappensUntilItIsArmed) {
  EXPECT_EQ(failures_of(pass_block, 3), 0);
  arm("checkpoint.shard.block:throw");
  EXPECT_EQ(failures_of(pass_block, 3), 3);
  EXPECT_EQ(failures_of(pass_meeting, 3), 0) << "another point";
  arm("");
  EXPECT_EQ(failures_of(pass_block, 3), 0);
}

TEST_F(Failpoint, TheErrorNamesThePoint) {
  arm("checkpoint.shard.block:throw");
  EXPECT_EQ(error_of<InternalError>(pass_block), "failpoint checkpoint.shard.block was told to throw");
  arm("checkpoint.shard.block:enospc");
  EXPECT_EQ(error_of<UsageError>(pass_block), "failpoint checkpoint.shard.block: No space left on device");
  arm("checkpoint.shard.block:eio");
  EXPECT_EQ(error_of<UsageError>(pass_block), "failpoint checkpoint.shard.block: Input/output error");
}

TEST_F(Failpoint, TheProcessDiesStopsOrEnds) {
  const int killed = status_after_passing("checkpoint.shard.block:kill");
  EXPECT_TRUE(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGKILL);
  const int stopped = status_after_passing("checkpoint.shard.block:stop");
  EXPECT_TRUE(WIFSTOPPED(stopped) && WSTOPSIG(stopped) == SIGSTOP);
  const int ended = status_after_passing("checkpoint.shard.block:exit(7)");
  EXPECT_TRUE(WIFEXITED(ended) && WEXITSTATUS(ended) == 7);
  EXPECT_EQ(status_after_passing("checkpoint.shard.block:sleep(1)"), 0);
}

TEST_F(Failpoint, ABitOfTheValuesChanges) {
  std::array<std::byte, 2> values = {};
  const auto pass_values = [&] { LOCKSTEP_FAILPOINT_VALUES("train.applied", Bytes(values)); };
  pass_values();
  EXPECT_EQ(values, (std::array<std::byte, 2>{}));
  arm("train.applied:corrupt(11)");
  pass_values();
  EXPECT_EQ(values, (std::array{std::byte{0}, std::byte{8}}));
  arm("train.applied:corrupt(16)");
  pass_values();
  EXPECT_EQ(values, (std::array{std::byte{0}, std::byte{8}})) << "there are fewer bits";
  EXPECT_THAT(error_of<UsageError>([] { arm("train.forward:corrupt(1)"); }),
              HasSubstr("asks for corrupt where there are no values"));
}

TEST_F(Failpoint, AllConditionsMustHold) {
  arm("checkpoint.shard.block@rank=1,step=7:throw");
  EXPECT_EQ(failures_of(pass_block, 1), 0) << "neither is known";
  set_rank(1);
  EXPECT_EQ(failures_of(pass_block, 1), 0) << "the step is not known";
  set_step(6);
  EXPECT_EQ(failures_of(pass_block, 1), 0);
  set_step(7);
  EXPECT_EQ(failures_of(pass_block, 2), 2);
  set_rank(0);
  EXPECT_EQ(failures_of(pass_block, 1), 0);
}

TEST_F(Failpoint, AHitIsCountedWhileTheOtherConditionsHold) {
  arm("checkpoint.shard.block@hit=3,step=7:throw");
  set_step(6);
  EXPECT_EQ(failures_of(pass_block, 5), 0);
  set_step(7);
  EXPECT_EQ(failures_of(pass_block, 2), 0);
  EXPECT_EQ(failures_of(pass_block, 1), 1);
  EXPECT_EQ(failures_of(pass_block, 5), 0);
}

TEST_F(Failpoint, OnceIsOnceForAllProcesses) {
  const test::TemporaryFolder folder;
  const std::string rule = "checkpoint.shard.block@once=" + folder.path("fired") + ":throw";
  arm(rule);
  EXPECT_FALSE(std::filesystem::exists(folder.path("fired")));
  EXPECT_EQ(failures_of(pass_block, 3), 1);
  EXPECT_TRUE(std::filesystem::exists(folder.path("fired")));
  arm(rule);  // as a process that is started again does
  EXPECT_EQ(failures_of(pass_block, 3), 0);
}

TEST_F(Failpoint, SeveralRules) {
  arm("checkpoint.shard.block@hit=1:throw;rendezvous.before_meet@hit=2:throw;");
  EXPECT_EQ(failures_of(pass_block, 3), 1);
  EXPECT_EQ(failures_of(pass_meeting, 3), 1);
}

TEST_F(Failpoint, ABadSpecificationSaysWhatWasMeant) {
  const auto refusal = [](const std::string& specification) {
    return error_of<UsageError>([&] { arm(specification); });
  };
  EXPECT_EQ(refusal("checkpoint.shard.blok:kill"),
            "unknown failpoint 'checkpoint.shard.blok': did you mean 'checkpoint.shard.block'?");
  EXPECT_THAT(refusal("nothing\nlike it:kill"),
              AllOf(HasSubstr("unknown failpoint 'nothing?like it': expected one of"),
                    HasSubstr("checkpoint.begun")));
  EXPECT_EQ(refusal("checkpoint.begun:kil"), "unknown action of a failpoint 'kil': did you mean 'kill'?");
  EXPECT_EQ(refusal("checkpoint.begun@setp=7:kill"),
            "unknown condition of a failpoint 'setp': did you mean 'step'?");
  EXPECT_EQ(
      refusal("checkpoint.begun@rank=x:kill"),
      "the failpoint rule 'checkpoint.begun@rank=x:kill' has 'x' where a whole number from 0 to 2147483647 "
      "belongs: expected NAME@CONDITION,...:ACTION, as in checkpoint.begun@rank=1,step=7:kill");
  for (const char* bad :
       {"checkpoint.begun", "checkpoint.begun:", "checkpoint.begun:exit", "checkpoint.begun:exit()",
        "checkpoint.begun:exit(256)", "checkpoint.begun:exit(1", "checkpoint.begun:kill(1)",
        "checkpoint.begun:sleep(99999999)", "checkpoint.begun@hit=0:kill", "checkpoint.begun@rank=-1:kill",
        "checkpoint.begun@step=99999999999999999999:kill", "checkpoint.begun@once=:kill"}) {
    EXPECT_THAT(refusal(bad), HasSubstr(std::string("the failpoint rule '") + bad + "' ")) << bad;
  }
  EXPECT_THAT(refusal("rendezvous.before_meet:enospc"), HasSubstr("asks for enospc where no disk is used"));
}

TEST_F(Failpoint, ABadSpecificationLeavesWhatWasArmed) {
  arm("checkpoint.shard.block:throw");
  EXPECT_THROW(arm("checkpoint.shard.block:kill;x:kill"), UsageError);
  EXPECT_EQ(failures_of(pass_block, 1), 1);
}

TEST_F(Failpoint, TheEnvironmentArms) {
  {
    const test::ScopedVariable variable(kVariable, "checkpoint.shard.block:throw");
    arm_from_environment();
    EXPECT_EQ(failures_of(pass_block, 1), 1);
  }
  const test::ScopedVariable variable(kVariable, "x:kill");
  EXPECT_THAT(error_of<UsageError>(arm_from_environment),
              HasSubstr("LOCKSTEP_FAILPOINTS: unknown failpoint 'x'"));
}

TEST(FailpointTable, NamesArePlainAndComeOnce) {
  std::set<std::string_view> seen;
  for (const Point& point : kPoints) {
    EXPECT_TRUE(seen.insert(point.name).second) << point.name;
    EXPECT_EQ(point.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_."), std::string_view::npos)
        << point.name;
    EXPECT_NE(point.name.find('.'), std::string_view::npos) << point.name << " has no area";
    EXPECT_FALSE(point.phase.empty()) << point.name;
  }
  EXPECT_FALSE(is_known("checkpoint.shard"));
}

}  // namespace
}  // namespace lockstep::failpoint
