// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/communicator.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/loopback/endpoint.h"

#include "tests/comm/collective_cases.h"
#include "tests/comm/failures.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"
#include "tests/support/values.h"
#include "tests/support/worlds.h"

namespace lockstep::test {
namespace {

// Every case over every transport, with ranks as threads.
class Conformance : public testing::TestWithParam<std::tuple<std::string, int, CollectiveCase>> {};

TEST_P(Conformance, Holds) {
  const auto& [transport, world, collective_case] = GetParam();
  comm::GroupSettings settings;
  if (transport == "routed") settings.hosts = hosts_of_routed(world);
  run_ranks(make_world(transport, world), settings, collective_case.run);
}

std::string name_of_case(const testing::TestParamInfo<Conformance::ParamType>& info) {
  return fmt::format("{}_{}_{}", std::get<0>(info.param), std::get<1>(info.param),
                     std::get<2>(info.param).name);
}

INSTANTIATE_TEST_SUITE_P(Loopback, Conformance,
                         testing::Combine(testing::Values("loopback"), testing::Values(1, 2, 3, 4, 5, 6, 8),
                                          testing::ValuesIn(collective_cases())),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Connected, Conformance,
                         testing::Combine(testing::Values("shm", "tcp", "routed"), testing::Values(2, 3, 4),
                                          testing::ValuesIn(collective_cases())),
                         name_of_case);
// Far more ranks than most machines that run this have cores.
INSTANTIATE_TEST_SUITE_P(Crowded, Conformance,
                         testing::Combine(testing::Values("shm"), testing::Values(8),
                                          testing::ValuesIn(collective_cases())),
                         name_of_case);

TEST(Communicator, SeveralThreadsCallAtOnceOnStreamsOfTheirOwn) {
  run_ranks(3, [](comm::Communicator& world) {
    std::vector<std::jthread> threads;
    for (std::uint32_t stream = 0; stream < comm::kStreamsPerGroup; ++stream) {
      threads.emplace_back([&world, stream] {
        for (std::uint32_t i = 0; i < 50; ++i) {
          const std::size_t count = 10 + 3000 * (i % 3);
          auto data = values_of(world.rank(), stream, DType::fp32, count, Values::rough);
          world.all_reduce(data, {.stream = stream});
          const auto expected =
              reduced_values(world.size(), stream, DType::fp32, count, Values::rough, comm::ReduceOp::sum);
          EXPECT_EQ(first_difference(data, expected, DType::fp32), -1);
        }
      });
    }
  });
}

TEST(Communicator, TellsOfEveryWaitAndOfNothingElse) {
  run_ranks(2, [](comm::Communicator& world) {
    int begun = 0;
    int under_way = 0;
    world.watch_waits([&](bool begins) {
      begun += begins ? 1 : 0;
      under_way += begins ? 1 : -1;
    });
    std::vector<std::byte> data(64);
    world.all_reduce(data, {.dtype = DType::uint8});
    const int after_one = begun;
    EXPECT_GE(after_one, 1);
    comm::Work work = world.all_reduce_async(data, {.dtype = DType::uint8});
    EXPECT_EQ(begun, after_one);
    work.wait();
    const int after_two = begun;
    EXPECT_GT(after_two, after_one);
    world.split(0, world.rank(), "pair").barrier();
    EXPECT_GT(begun, after_two) << "the groups of a process are told of together";
    world.abort("the test is over");
    EXPECT_THROW(world.barrier(), CommError);
    EXPECT_EQ(under_way, 0);
    world.watch_waits(nullptr);
  });
}

// Of /proc/self/status, in KiB.
std::int64_t memory_of_process(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":")) return std::stoll(line.substr(key.size() + 1));
  }
  ADD_FAILURE() << "/proc/self/status has no " << key;
  return 0;
}

TEST(Communicator, OfPeerMemoryOnlySoMuchCounts) {
  constexpr std::size_t kCount = 8 << 20;
  run_ranks(make_world("shm", 2), {}, [](comm::Communicator& world) {
    const comm::Buffer buffer = world.allocate(kCount * sizeof(float));
    const std::span<float> values = buffer.as<float>();
    // In this one process, of the memory of both.
    const auto resident_after_a_sum = [&] {
      std::ranges::fill(values, static_cast<float>(world.rank() + 1));
      world.all_reduce(buffer.bytes());
      EXPECT_EQ(std::ranges::count(values, 3.0F), static_cast<std::ptrdiff_t>(kCount));
      world.barrier();
      const std::int64_t resident = memory_of_process("RssShmem");
      world.barrier();
      return resident;
    };
    const std::int64_t unlimited = resident_after_a_sum();
    world.limit_peer_memory(std::size_t{1} << 20);
    for (int round = 0; round < 2; ++round) {
      // Each of the two had at least half of the other's.
      EXPECT_LE(resident_after_a_sum(), unlimited - 28'000);
    }
  });
}

// Also of what is copied from one message of a peer, while it is.
TEST(Communicator, OfPeerMemoryOnlySoMuchCountsInTheMiddleOfAMessage) {
  constexpr std::size_t kShare = std::size_t{16} << 20;
  constexpr int kRanks = 3;
  // By rank, of this one process, while all copy.
  std::array<std::int64_t, kRanks> before{};
  std::array<std::int64_t, kRanks> most{};
  run_ranks(make_world("shm", kRanks), {}, [&](comm::Communicator& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    const comm::Buffer buffer = world.allocate(kRanks * kShare);
    std::ranges::fill(buffer.bytes(), std::byte{1});
    world.limit_peer_memory(std::size_t{1} << 20);
    world.barrier();
    before[rank] = memory_of_process("RssShmem");
    world.barrier();
    comm::Work work =
        world.all_gather_async(buffer.bytes(), {.dtype = DType::uint8, .algorithm = comm::Algorithm::direct});
    while (!work.has_ended()) most[rank] = std::max(most[rank], memory_of_process("RssShmem"));
    work.wait();
    world.barrier();
  });
  for (int rank = 0; rank < kRanks; ++rank) {
    ASSERT_GT(most[rank], 0) << "it was looked at while messages were copied";
    // Each copies 32 MiB of the others', and the limit holds for each of the three.
    EXPECT_LE(most[rank], before[rank] + 12'000);
  }
}

class Messages : public OverTransport {};

// What MPI programs do: post the receive first, then send.
TEST_P(Messages, ASendDoesNotWaitForReceivesPostedBefore) {
  run(2, [](comm::Communicator& world) {
    std::array<float, 4> mine{}, theirs{};
    const Bytes out = std::as_writable_bytes(std::span(mine));
    const Bytes in = std::as_writable_bytes(std::span(theirs));
    if (world.rank() == 0) {
      comm::Work answer = world.recv_async(1, in);
      world.send(1, out);
      world.send(1, out);
      answer.wait();
    } else {
      world.recv(0, in);
      world.recv(0, in);
      world.send(0, out);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, Messages, testing::Values("loopback", "shm", "tcp"), name_of_transport);

TEST(Communicator, WorkOutlivesItsCommunicator) {
  run_ranks(2, [](comm::Communicator& world) {
    std::vector<float> ones(100'000, 1.0F);
    comm::Work work =
        world.split(0, world.rank(), "short-lived").all_reduce_async(std::as_writable_bytes(std::span(ones)));
    work.wait();
    EXPECT_EQ(ones, std::vector<float>(100'000, 2.0F));
  });
}

TEST(Communicator, AGroupRefusesANegativeTimeout) {
  EXPECT_THROW(comm::Communicator(std::move(transport::make_loopback(1).front()),
                                  {.timeout = std::chrono::milliseconds(-1)}),
               UsageError);
}

TEST(Communicator, AGroupRefusesHostsOfMoreOrFewerRanks) {
  for (const std::vector<int>& hosts : {std::vector<int>{0}, std::vector<int>{0, 0, 1}}) {
    auto endpoints = transport::make_loopback(2);
    EXPECT_EQ(error_of<UsageError>(
                  [&] { comm::Communicator(std::move(endpoints[0]), {.name = "dp", .hosts = hosts}); }),
              fmt::format("hosts are given for {} ranks, but dp has 2", hosts.size()));
  }
}

// Ranks dealt out over two hosts.
TEST(Communicator, AHierarchyOfScatteredHostsIsRefusedUntilTheyAreInOrder) {
  run_ranks(transport::make_loopback(4), {.hosts = {0, 1, 0, 1}}, [](comm::Communicator& world) {
    std::vector<float> ones(100, 1.0F);
    const Bytes data = std::as_writable_bytes(std::span(ones));
    const comm::Options options{.algorithm = comm::Algorithm::hierarchical};
    EXPECT_THAT(error_of<UsageError>([&] { world.all_reduce(data, options); }),
                testing::HasSubstr("number the ranks host by host"));
    world.split(0, world.hosts()[static_cast<std::size_t>(world.rank())], "in order")
        .all_reduce(data, options);
    EXPECT_EQ(ones, std::vector<float>(100, 4.0F));
  });
}

// What the selector takes there is a hierarchy (select_test.cpp).
TEST(Communicator, ExactSumsHaveTheSameBitsOnSeveralHosts) {
  constexpr std::size_t kCount = 1'000'003;
  for (const std::vector<int>& hosts :
       {std::vector<int>{0, 0, 1, 1}, {0, 0, 0, 0, 1, 1, 1, 1}, {0, 0, 1, 1, 2, 2}, {0, 0, 0, 1, 1, 1}}) {
    const int world = static_cast<int>(hosts.size());
    run_ranks(transport::make_loopback(world), {.hosts = hosts}, [](comm::Communicator& group) {
      auto chosen = values_of(group.rank(), 4, DType::fp32, kCount, Values::rough);
      auto direct = chosen;
      group.all_reduce(chosen);
      group.all_reduce(direct, {.algorithm = comm::Algorithm::direct});
      EXPECT_EQ(chosen, direct);
    });
  }
}

TEST(Communicator, AWorldOfOneNeedsNoPeers) {
  comm::Communicator alone;
  EXPECT_EQ(alone.size(), 1);
  EXPECT_EQ(alone.rank(), 0);
  for (const CollectiveCase& each : collective_cases()) {
    SCOPED_TRACE(each.name);
    each.run(alone);
  }
}

}  // namespace
}  // namespace lockstep::test
