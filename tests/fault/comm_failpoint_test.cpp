// SPDX-License-Identifier: Apache-2.0
//
// A rank that dies, stops or fails at every failpoint of a collective: the others are told who, and none
// waits for ever.
#include <chrono>
#include <csignal>
#include <string>
#include <tuple>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "lockstep/base/failpoint.h"
#include "lockstep/comm/communicator.h"

#include "tests/fault/silent_rank.h"
#include "tests/support/failpoints.h"
#include "tests/support/processes.h"

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using comm::Communicator;
using testing::AnyOf;
using testing::HasSubstr;

constexpr int kWorld = 3;
constexpr Rank kVictim = 1;
constexpr int kGoodSums = 4;

void sum_for_ever(Communicator& comm, const RankProcesses::Tell& tell) {
  comm::Buffer data = comm.allocate(std::size_t{1} << 20U);
  for (int i = 0;; ++i) {
    failpoint::set_step(i);
    if (i == kGoodSums) tell("running");
    comm.all_reduce(data.bytes());
  }
}

class CommFailpoint : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  static const std::string& point() { return std::get<1>(GetParam()); }

  // All have told that they run when this returns.
  static RankProcesses start(const std::string& action, std::chrono::milliseconds timeout) {
    const std::string rule = fmt::format("{}@rank={},step={}:{}", point(), kVictim, kGoodSums, action);
    return RankProcesses(kWorld,
                         {.carrier = comm::parse_carrier(std::get<0>(GetParam())),
                          .tcp_streams = 0,
                          .group = {.name = "world", .timeout = timeout}},
                         sum_for_ever, "127.0.0.1", [rule](Rank) { failpoint::arm(rule); });
  }
  static void await_running(RankProcesses& ranks) {
    for (Rank rank = 0; rank < kWorld; ++rank) ASSERT_EQ(ranks.next_line(rank), "running");
  }
};

TEST_P(CommFailpoint, AKilledRankIsNamedByTheOthers) {
  RankProcesses ranks = start("kill", 60s);
  await_running(ranks);
  const int status = ranks.wait(kVictim);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  for (const Rank rank : {0, 2}) {
    EXPECT_THAT(ranks.next_line(rank), HasSubstr(fmt::format("rank {} is gone", kVictim))) << "rank " << rank;
    EXPECT_EQ(WEXITSTATUS(ranks.wait(rank)), 1);
  }
}

TEST_P(CommFailpoint, ARankThatFailsTellsTheOthersWhy) {
  RankProcesses ranks = start("throw", 60s);
  await_running(ranks);
  const std::string why = fmt::format("failpoint {} was told to throw", point());
  EXPECT_THAT(ranks.next_line(kVictim), HasSubstr(why));
  for (const Rank rank : {0, 2}) {
    // What fails before anybody knows of the call is only seen by its end.
    EXPECT_THAT(ranks.next_line(rank),
                AnyOf(HasSubstr(why), HasSubstr(fmt::format("rank {} is gone", kVictim))))
        << "rank " << rank;
    EXPECT_EQ(WEXITSTATUS(ranks.wait(rank)), 1);
  }
}

TEST_P(CommFailpoint, AStoppedRankIsNamedAtTheDeadline) {
  RankProcesses ranks = start("stop", 700ms);
  await_running(ranks);
  expect_named_as_silent(ranks, kVictim, {0, 2});
  ranks.signal(kVictim, SIGCONT);
  EXPECT_THAT(ranks.next_line(kVictim), AnyOf(HasSubstr("is gone"), HasSubstr("failed: ")));
}

INSTANTIATE_TEST_SUITE_P(All, CommFailpoint,
                         testing::Combine(testing::Values("shm", "tcp"),
                                          testing::ValuesIn(swept_failpoints("comm."))),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + test_name_of(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace lockstep::test
