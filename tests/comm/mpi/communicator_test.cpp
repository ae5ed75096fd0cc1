// SPDX-License-Identifier: Apache-2.0
//
// Collectives over MPI: every process that mpirun started runs all tests in lock step.
#include "lockstep/comm/communicator.h"

#include <array>
#include <chrono>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/schedule/collective/collective.h"
#include "lockstep/transport/mpi/endpoint.h"

#include "tests/comm/collective_cases.h"

namespace lockstep::test {
namespace {

using namespace std::chrono_literals;
using comm::Communicator;
using testing::AllOf;
using testing::HasSubstr;

Communicator make_communicator(std::chrono::milliseconds timeout = 60s) {
  return Communicator(transport::make_mpi_endpoint(), {.name = "dp", .timeout = timeout});
}

class OverMpi : public testing::TestWithParam<CollectiveCase> {};

TEST_P(OverMpi, Holds) {
  Communicator world = make_communicator();
  ASSERT_GE(world.size(), 2);
  GetParam().run(world);
}

std::string name_of_case(const testing::TestParamInfo<CollectiveCase>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Mpi, OverMpi, testing::ValuesIn(collective_cases()), name_of_case);

TEST(MpiCommunicator, RanksThatDisagreeAreToldBothSides) {
  const Communicator world = make_communicator();
  std::array<float, 1024> values = {};
  const std::size_t count = world.rank() == 0 ? 1024 : 512;
  std::string told;
  try {
    world.all_reduce(std::as_writable_bytes(std::span(values).first(count)));
  } catch (const CommError& error) {
    told = error.what();
  }
  EXPECT_THAT(told, AllOf(HasSubstr("1024"), HasSubstr("512")));
}

// What a call that rank 1 does not make fails with; rank 1 stays for `presence` and leaves.
std::string failure_without_rank_1(std::chrono::milliseconds timeout, std::chrono::milliseconds presence) {
  const Communicator world = make_communicator(timeout);
  if (world.rank() == 1) {
    std::this_thread::sleep_for(presence);
    return "rank 1 made no call";
  }
  std::array<float, 1024> values = {};
  std::string told;
  try {
    world.all_reduce(std::as_writable_bytes(std::span(values)));
  } catch (const CommError& error) {
    told = error.what();
  }
  return told;
}

TEST(MpiCommunicator, ARankThatLeavesInsteadIsNamed) {
  EXPECT_THAT(failure_without_rank_1(60s, 0s), HasSubstr("rank 1"));
}

TEST(MpiCommunicator, ARankThatDoesNotComeIsNamedAtTheDeadline) {
  EXPECT_THAT(failure_without_rank_1(300ms, 1s), HasSubstr("rank 1"));
}

// What it has sent waits at the root for the part of the last rank, in pieces or whole.
TEST(MpiCommunicator, WhoHasSentItsPartMayLeaveWhileAnotherIsLate) {
  using comm::Algorithm;
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::tree, Algorithm::direct, Algorithm::one_shot, Algorithm::mesh}) {
    if (!schedule::supports(algorithm, schedule::Op::reduce)) continue;
    for (const std::size_t count : {std::size_t{8}, std::size_t{50'000}}) {
      std::vector<float> data(count, 1.0F);
      const Communicator world = make_communicator();
      if (world.rank() == world.size() - 1) std::this_thread::sleep_for(60ms);
      EXPECT_NO_THROW(
          world.reduce(std::as_writable_bytes(std::span(data)), {.root = 0, .algorithm = algorithm}))
          << count << " by " << name_of(algorithm) << " on rank " << world.rank();
    }
  }
}

}  // namespace
}  // namespace lockstep::test
