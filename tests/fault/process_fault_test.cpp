// SPDX-License-Identifier: Apache-2.0
//
// Processes killed, stopped and continued in the middle of every operation.
#include <chrono>
#include <csignal>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "lockstep/comm/communicator.h"

#include "tests/fault/silent_rank.h"
#include "tests/support/files.h"
#include "tests/support/processes.h"
#include "tests/support/values.h"

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using comm::Algorithm;
using comm::Communicator;
using testing::AnyOf;
using testing::HasSubstr;

constexpr int kWorld = 3;
constexpr Rank kVictim = 1;
constexpr std::size_t kFloats = 300'000;

using Operation = std::function<void(const Communicator&, Bytes data, Bytes other)>;

const std::map<std::string, Operation>& operations() {
  static const std::map<std::string, Operation> all = {
      {"AllReduceDirect", [](auto& c, Bytes d, Bytes) { c.all_reduce(d, {.algorithm = Algorithm::direct}); }},
      {"AllReduceRing", [](auto& c, Bytes d, Bytes) { c.all_reduce(d, {.algorithm = Algorithm::ring}); }},
      {"AllReduceTree", [](auto& c, Bytes d, Bytes) { c.all_reduce(d, {.algorithm = Algorithm::tree}); }},
      {"AllReduceOneShot",
       [](auto& c, Bytes d, Bytes) { c.all_reduce(d.first(4096), {.algorithm = Algorithm::one_shot}); }},
      {"ReduceScatter", [](auto& c, Bytes d, Bytes) { c.reduce_scatter(d); }},
      {"AllGather", [](auto& c, Bytes d, Bytes) { c.all_gather(d); }},
      // From the victim and to it: the survivors depend on it directly, and so have nobody else to name.
      {"Broadcast", [](auto& c, Bytes d, Bytes) { c.broadcast(d, {.root = kVictim}); }},
      {"Reduce", [](auto& c, Bytes d, Bytes) { c.reduce(d, {.root = kVictim}); }},
      {"AllToAll", [](auto& c, Bytes d, Bytes o) { c.all_to_all(d, o); }},
      {"Barrier", [](auto& c, Bytes, Bytes) { c.barrier(); }},
      // Likewise, only with the victim.
      {"SendRecv",
       [](auto& c, Bytes d, Bytes o) {
         const std::size_t share = d.size() / kWorld;
         std::vector<comm::Work> works;
         for (Rank peer = 0; peer < kWorld; ++peer) {
           if ((peer == kVictim) == (c.rank() == kVictim)) continue;
           works.push_back(c.send_async(peer, d.subspan(peer * share, share)));
           works.push_back(c.recv_async(peer, o.subspan(peer * share, share)));
         }
         for (comm::Work& work : works) work.wait();
       }},
  };
  return all;
}

// Repeats the operation for ever: what ends it is what the test does to the victim.
RankProcesses::Body repeat(const Operation& operation) {
  return [operation](Communicator& comm, const RankProcesses::Tell& tell) {
    comm::Buffer data = comm.allocate(kFloats * sizeof(float));
    comm::Buffer other = comm.allocate(kFloats * sizeof(float));
    operation(comm, data.bytes(), other.bytes());
    tell("running");
    while (true) operation(comm, data.bytes(), other.bytes());
  };
}

comm::ConnectOptions options_for(const std::string& carrier, std::chrono::milliseconds timeout) {
  return {.carrier = comm::parse_carrier(carrier),
          .tcp_streams = 0,
          .group = {.name = "world", .timeout = timeout}};
}

class Faults : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  static const std::string& carrier() { return std::get<0>(GetParam()); }
  static const Operation& operation() { return operations().at(std::get<1>(GetParam())); }

  static void await_running(RankProcesses& ranks) {
    for (Rank rank = 0; rank < kWorld; ++rank) ASSERT_EQ(ranks.next_line(rank), "running");
    std::this_thread::sleep_for(20ms);  // somewhere in the middle
  }
};

TEST_P(Faults, AKilledRankIsNamedByTheOthers) {
  RankProcesses ranks(kWorld, options_for(carrier(), 60s), repeat(operation()));
  await_running(ranks);
  ranks.signal(kVictim, SIGKILL);
  for (Rank rank : {0, 2}) {
    // Noticed by the closed connection, long before the deadline.
    EXPECT_THAT(ranks.next_line(rank), HasSubstr(fmt::format("rank {} is gone", kVictim))) << "rank " << rank;
    EXPECT_EQ(WEXITSTATUS(ranks.wait(rank)), 1);
  }
}

TEST_P(Faults, AStoppedRankIsNamedAtTheDeadlineAndFailsWhenItGoesOn) {
  RankProcesses ranks(kWorld, options_for(carrier(), 700ms), repeat(operation()));
  await_running(ranks);
  ranks.signal(kVictim, SIGSTOP);
  expect_named_as_silent(ranks, kVictim, {0, 2});
  ranks.signal(kVictim, SIGCONT);
  EXPECT_THAT(ranks.next_line(kVictim), AnyOf(HasSubstr("is gone"), HasSubstr("failed: ")));
  EXPECT_EQ(WEXITSTATUS(ranks.wait(kVictim)), 1);
}

std::vector<std::string> names_of_operations() {
  std::vector<std::string> names;
  for (const auto& [name, operation] : operations()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(
    All, Faults, testing::Combine(testing::Values("shm", "tcp"), testing::ValuesIn(names_of_operations())),
    [](const auto& test) { return std::get<0>(test.param) + "_" + std::get<1>(test.param); });

class Pauses : public testing::TestWithParam<std::string> {};

TEST_P(Pauses, AShortStopChangesNothing) {
  RankProcesses ranks(
      kWorld, options_for(GetParam(), 60s), [](Communicator& comm, const RankProcesses::Tell& tell) {
        comm::Buffer buffer = comm.allocate(kFloats * sizeof(float));
        const auto input = values_of(comm.rank(), 1, DType::fp32, kFloats, Values::rough);
        const auto expected =
            reduced_values(kWorld, 1, DType::fp32, kFloats, Values::rough, comm::ReduceOp::sum);
        for (int i = 0; i < 100; ++i) {
          std::copy(input.begin(), input.end(), buffer.bytes().begin());
          comm.all_reduce(buffer.bytes());
          if (first_difference(buffer.bytes(), expected, DType::fp32) != -1) return tell("wrong sum");
          if (i == 10) tell("running");
        }
        tell("right");
      });
  for (Rank rank = 0; rank < kWorld; ++rank) ASSERT_EQ(ranks.next_line(rank), "running");
  for (Rank rank = 0; rank < kWorld; ++rank) {
    ranks.signal(rank, SIGSTOP);
    std::this_thread::sleep_for(50ms);
    ranks.signal(rank, SIGCONT);
  }
  for (Rank rank = 0; rank < kWorld; ++rank) EXPECT_EQ(ranks.next_line(rank), "right");
}

TEST_P(Pauses, NothingIsLeftAfterAllAreKilled) {
  const auto before = shared_memory_names();
  {
    RankProcesses ranks(kWorld, options_for(GetParam(), 60s), repeat(operations().at("AllReduceDirect")));
    for (Rank rank = 0; rank < kWorld; ++rank) ASSERT_EQ(ranks.next_line(rank), "running");
    EXPECT_EQ(shared_memory_names(), before) << "while running";
    for (Rank rank = 0; rank < kWorld; ++rank) ranks.signal(rank, SIGKILL);
  }
  EXPECT_EQ(shared_memory_names(), before) << "after all were killed";
}

INSTANTIATE_TEST_SUITE_P(All, Pauses, testing::Values("shm", "tcp"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace lockstep::test
