// SPDX-License-Identifier: Apache-2.0
//
// Ranks on two hosts, and what the link between them can do.
#include "tests/support/two_hosts.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/communicator.h"

#include "tests/support/processes.h"
#include "tests/support/values.h"

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using comm::Communicator;
using testing::AnyOf;
using testing::HasSubstr;

constexpr int kWorld = 4;  // two ranks on each host

class TwoHostsTest : public testing::Test {
 protected:
  // Addresses that others can reach need a secret.
  void SetUp() override { setenv("LOCKSTEP_SECRET", "two hosts and one secret", 1); }
  void TearDown() override { unsetenv("LOCKSTEP_SECRET"); }

  RankProcesses start(const RankProcesses::Body& body, std::chrono::milliseconds timeout) const {
    return RankProcesses(kWorld,
                         {.carrier = comm::Carrier::automatic,
                          .tcp_streams = 0,
                          .group = {.name = "world", .timeout = timeout}},
                         body, TwoHosts::address(0), [this](Rank rank) { hosts_.enter(rank / 2); });
  }

  TwoHosts hosts_;
};

void reduce_often(Communicator& comm, const RankProcesses::Tell& tell, int times, std::size_t count) {
  comm::Buffer buffer = comm.allocate(count * sizeof(float));
  const auto input = values_of(comm.rank(), 1, DType::fp32, count, Values::rough);
  const auto expected = reduced_values(kWorld, 1, DType::fp32, count, Values::rough, comm::ReduceOp::sum);
  for (int i = 0; i < times; ++i) {
    std::copy(input.begin(), input.end(), buffer.bytes().begin());
    comm.all_reduce(buffer.bytes());
    if (first_difference(buffer.bytes(), expected, DType::fp32) != -1) return tell("wrong sum");
    if (i == 0) tell("running");
  }
  tell("right");
}

TEST_F(TwoHostsTest, RanksFindTheFastWayAndTheSumIsExact) {
  RankProcesses ranks = start(
      [](Communicator& comm, const RankProcesses::Tell& tell) {
        for (Rank peer = 0; peer < kWorld; ++peer) {
          if (peer != comm.rank()) tell(std::string(comm.link_to(peer)));
        }
        reduce_often(comm, tell, 20, 50'000);
      },
      60s);
  for (Rank rank = 0; rank < kWorld; ++rank) {
    for (Rank peer = 0; peer < kWorld; ++peer) {
      if (peer == rank) continue;
      EXPECT_EQ(ranks.next_line(rank), rank / 2 == peer / 2 ? "shm" : "tcp") << rank << " to " << peer;
    }
    EXPECT_EQ(ranks.next_line(rank), "running");
    EXPECT_EQ(ranks.next_line(rank), "right");
  }
}

TEST_F(TwoHostsTest, ASlowLinkOnlyTakesLonger) {
  hosts_.limit_rate("20mbit");
  // The deadline is for silence: a transfer that takes longer than it must not fail.
  RankProcesses ranks = start(
      [](Communicator& comm, const RankProcesses::Tell& tell) { reduce_often(comm, tell, 2, 1'000'000); },
      1s);
  for (Rank rank = 0; rank < kWorld; ++rank) {
    EXPECT_EQ(ranks.next_line(rank), "running");
    EXPECT_EQ(ranks.next_line(rank), "right");
  }
}

TEST_F(TwoHostsTest, ALossyLinkOnlyTakesLonger) {
  hosts_.lose(5);
  RankProcesses ranks = start(
      [](Communicator& comm, const RankProcesses::Tell& tell) { reduce_often(comm, tell, 10, 50'000); }, 30s);
  for (Rank rank = 0; rank < kWorld; ++rank) {
    EXPECT_EQ(ranks.next_line(rank), "running");
    EXPECT_EQ(ranks.next_line(rank), "right");
  }
  EXPECT_TRUE(hosts_.has_lost_some());
}

TEST_F(TwoHostsTest, ACutLinkIsNoticedAtTheDeadlineOnBothSides) {
  RankProcesses ranks =
      start([](Communicator& comm,
               const RankProcesses::Tell& tell) { reduce_often(comm, tell, 1'000'000, 50'000); },
            1s);
  for (Rank rank = 0; rank < kWorld; ++rank) ASSERT_EQ(ranks.next_line(rank), "running");
  hosts_.cut();
  for (Rank rank = 0; rank < kWorld; ++rank) {
    EXPECT_THAT(ranks.next_line(rank),
                AnyOf(HasSubstr("silent for"), HasSubstr("has not arrived"), HasSubstr("is gone")))
        << "rank " << rank;
    EXPECT_EQ(WEXITSTATUS(ranks.wait(rank)), 1);
  }
}

}  // namespace
}  // namespace lockstep::test
