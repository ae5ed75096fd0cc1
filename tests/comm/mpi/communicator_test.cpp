// SPDX-License-Identifier: Apache-2.0
//
// The cases of every communicator over MPI, under mpirun: all ranks run the same tests in the same order.
#include "lockstep/comm/communicator.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "lockstep/transport/mpi/endpoint.h"

#include "tests/comm/collective_cases.h"

namespace lockstep::test {
namespace {

// MPI can be initialized once per process, so all tests share one world; each gets a group of its own in it.
class World : public testing::Environment {
 public:
  void SetUp() override {
    world = std::make_unique<comm::Communicator>(transport::make_mpi_endpoint(),
                                                 comm::GroupSettings{.name = "mpi"});
  }
  void TearDown() override { world.reset(); }

  std::unique_ptr<comm::Communicator> world;
};

class OverMpi : public testing::TestWithParam<CollectiveCase> {
 public:
  static World* environment;
};

World* OverMpi::environment = nullptr;

TEST_P(OverMpi, Holds) {
  ASSERT_GE(environment->world->size(), 2) << "run it under mpirun";
  GetParam().run(*environment->world);
}

INSTANTIATE_TEST_SUITE_P(Conformance, OverMpi, testing::ValuesIn(collective_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace lockstep::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  lockstep::test::OverMpi::environment = new lockstep::test::World;
  testing::AddGlobalTestEnvironment(lockstep::test::OverMpi::environment);  // owned by GoogleTest from here
  return RUN_ALL_TESTS();
}
