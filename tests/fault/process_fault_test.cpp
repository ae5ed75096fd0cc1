// SPDX-License-Identifier: Apache-2.0
//
// Processes killed, stopped and continued in the middle of every operation.
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
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
#include <sys/time.h>
#include <sys/wait.h>

#include "lockstep/base/deadline.h"
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

// Of four lanes rank 0 owns one, the victim three, which are two subtrees, and rank 2 none.
const comm::LanePieces& lane_pieces() {
  static const comm::LanePieces pieces = {{{0, 1}}, {{1, 1}, {2, 2}}, {}};
  return pieces;
}

// The partials of a rank: as many equal parts of the data as it brings pieces, or the one for the result.
std::vector<Bytes> lane_partials(const Communicator& comm, Bytes data) {
  const std::size_t bytes = data.size() / 2;
  std::vector<Bytes> partials = {data.first(bytes)};
  if (comm.rank() == kVictim) partials.push_back(data.last(bytes));
  return partials;
}

const std::map<std::string, Operation>& operations() {
  static const std::map<std::string, Operation> all = {
      {"AllReduceDirect", [](auto& c, Bytes d, Bytes) { c.all_reduce(d, {.algorithm = Algorithm::direct}); }},
      {"AllReduceRing", [](auto& c, Bytes d, Bytes) { c.all_reduce(d, {.algorithm = Algorithm::ring}); }},
      {"AllReduceTree", [](auto& c, Bytes d, Bytes) { c.all_reduce(d, {.algorithm = Algorithm::tree}); }},
      {"AllReduceOneShot",
       [](auto& c, Bytes d, Bytes) { c.all_reduce(d.first(4096), {.algorithm = Algorithm::one_shot}); }},
      {"AllReduceHalvingDoubling",
       [](auto& c, Bytes d, Bytes) { c.all_reduce(d, {.algorithm = Algorithm::halving_doubling}); }},
      {"AllReduceMesh", [](auto& c, Bytes d, Bytes) { c.all_reduce(d, {.algorithm = Algorithm::mesh}); }},
      {"AllReduceHierarchical",
       [](auto& c, Bytes d, Bytes) {
         c.all_reduce(
             d, {.algorithm = Algorithm::hierarchical, .inner = Algorithm::ring, .outer = Algorithm::tree});
       }},
      {"AllReduceLanes",
       [](auto& c, Bytes d, Bytes) { c.all_reduce_lanes(lane_partials(c, d), lane_pieces()); }},
      {"ReduceScatter", [](auto& c, Bytes d, Bytes) { c.reduce_scatter(d); }},
      {"ReduceScatterLanes",
       [](auto& c, Bytes d, Bytes) { c.reduce_scatter_lanes(lane_partials(c, d), lane_pieces()); }},
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

// The same on equal inputs, until rank 0 says that it is enough: every result must be that of the first time.
RankProcesses::Body repeat_and_compare(const Operation& operation) {
  return [operation](Communicator& comm, const RankProcesses::Tell& tell) {
    const comm::Buffer data = comm.allocate(kFloats * sizeof(float));
    const comm::Buffer other = comm.allocate(kFloats * sizeof(float));
    const auto input = values_of(comm.rank(), 1, DType::fp32, kFloats, Values::rough);
    const auto call = [&] {
      std::ranges::copy(input, data.bytes().begin());
      operation(comm, data.bytes(), other.bytes());
    };
    call();
    const std::vector<std::byte> expected(data.bytes().begin(), data.bytes().end());
    const std::vector<std::byte> expected_other(other.bytes().begin(), other.bytes().end());
    tell("running");
    const Deadline enough = Deadline::after(400ms);
    for (std::array go_on = {std::byte{1}}; go_on[0] == std::byte{1};) {
      call();
      if (!std::ranges::equal(data.bytes(), expected) || !std::ranges::equal(other.bytes(), expected_other)) {
        return tell("another result");
      }
      go_on[0] = std::byte{enough.passed() ? std::uint8_t{0} : std::uint8_t{1}};
      comm.broadcast(go_on, {.dtype = DType::uint8});
    }
    tell("right");
  };
}

comm::ConnectOptions options_for(const std::string& carrier, std::chrono::milliseconds timeout) {
  return {.carrier = comm::parse_carrier(carrier),
          .tcp_streams = 0,
          .group = {.name = "world", .timeout = timeout}};
}

// With "auto" the ranks are on two hosts, the first alone and the victim leading the other: shm inside, tcp
// between them.
RankProcesses start(const std::string& carrier, std::chrono::milliseconds timeout,
                    const RankProcesses::Body& body) {
  const RankProcesses::Setup on_two_hosts = [](Rank rank) {
    setenv("LOCKSTEP_HOST_ID", rank < kVictim ? "first" : "second", 1);
  };
  return RankProcesses(kWorld, options_for(carrier, timeout), body, "127.0.0.1",
                       carrier == "auto" ? on_two_hosts : RankProcesses::Setup{});
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
  RankProcesses ranks = start(carrier(), 60s, repeat(operation()));
  await_running(ranks);
  ranks.signal(kVictim, SIGKILL);
  for (Rank rank : {0, 2}) {
    // Noticed by the closed connection, long before the deadline.
    EXPECT_THAT(ranks.next_line(rank), HasSubstr(fmt::format("rank {} is gone", kVictim))) << "rank " << rank;
    EXPECT_EQ(WEXITSTATUS(ranks.wait(rank)), 1);
  }
}

TEST_P(Faults, AStoppedRankIsNamedAtTheDeadlineAndFailsWhenItGoesOn) {
  RankProcesses ranks = start(carrier(), 700ms, repeat(operation()));
  await_running(ranks);
  ranks.signal(kVictim, SIGSTOP);
  expect_named_as_silent(ranks, kVictim, {0, 2});
  ranks.signal(kVictim, SIGCONT);
  EXPECT_THAT(ranks.next_line(kVictim), AnyOf(HasSubstr("is gone"), HasSubstr("failed: ")));
  EXPECT_EQ(WEXITSTATUS(ranks.wait(kVictim)), 1);
}

TEST_P(Faults, AShortStopChangesNothing) {
  RankProcesses ranks = start(carrier(), 60s, repeat_and_compare(operation()));
  await_running(ranks);
  for (Rank rank = 0; rank < kWorld; ++rank) {
    ranks.signal(rank, SIGSTOP);
    std::this_thread::sleep_for(50ms);
    ranks.signal(rank, SIGCONT);
  }
  for (Rank rank = 0; rank < kWorld; ++rank) EXPECT_EQ(ranks.next_line(rank), "right");
}

std::vector<std::string> names_of_operations() {
  std::vector<std::string> names;
  for (const auto& [name, operation] : operations()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(
    All, Faults, testing::Combine(testing::Values("shm", "tcp"), testing::ValuesIn(names_of_operations())),
    [](const auto& test) { return std::get<0>(test.param) + "_" + std::get<1>(test.param); });

INSTANTIATE_TEST_SUITE_P(TwoHosts, Faults, testing::Values(std::tuple("auto", "AllReduceHierarchical")),
                         [](const auto& test) { return std::get<1>(test.param); });

// Signals that end system calls early, a thousand in a second.
void begin_signal_storm() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigaction(SIGALRM, &action, nullptr);
  const itimerval every_ms = {.it_interval = {0, 1000}, .it_value = {0, 1000}};
  setitimer(ITIMER_REAL, &every_ms, nullptr);
}

class SignalStorm : public Faults {};

TEST_P(SignalStorm, ChangesNothing) {
  const RankProcesses::Body body = repeat_and_compare(operation());
  RankProcesses ranks = start(carrier(), 60s, [&](Communicator& comm, const RankProcesses::Tell& tell) {
    begin_signal_storm();
    body(comm, tell);
  });
  for (Rank rank = 0; rank < kWorld; ++rank) EXPECT_EQ(ranks.next_line(rank), "running");
  for (Rank rank = 0; rank < kWorld; ++rank) EXPECT_EQ(ranks.next_line(rank), "right");
}

INSTANTIATE_TEST_SUITE_P(
    All, SignalStorm,
    testing::Combine(testing::Values("shm", "tcp"),
                     testing::Values("AllReduceDirect", "AllReduceLanes", "Broadcast", "SendRecv")),
    [](const auto& test) { return std::get<0>(test.param) + "_" + std::get<1>(test.param); });

class Remains : public testing::TestWithParam<std::string> {};

TEST_P(Remains, NothingIsLeftAfterAllAreKilled) {
  const auto before = shared_memory_names();
  {
    RankProcesses ranks = start(GetParam(), 60s, repeat(operations().at("AllReduceDirect")));
    for (Rank rank = 0; rank < kWorld; ++rank) ASSERT_EQ(ranks.next_line(rank), "running");
    EXPECT_EQ(shared_memory_names(), before) << "while running";
    for (Rank rank = 0; rank < kWorld; ++rank) ranks.signal(rank, SIGKILL);
  }
  EXPECT_EQ(shared_memory_names(), before) << "after all were killed";
}

INSTANTIATE_TEST_SUITE_P(All, Remains, testing::Values("shm", "tcp"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace lockstep::test
