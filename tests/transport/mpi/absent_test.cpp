// SPDX-License-Identifier: Apache-2.0
//
// For builds without MPI.
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/mpi/endpoint.h"

namespace lockstep::transport {
namespace {

TEST(NoMpi, SaysHowToBuildWithIt) {
  EXPECT_FALSE(mpi_available());
  try {
    make_mpi_endpoint();
    FAIL() << "an endpoint without MPI";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string_view(error.what()).find("LOCKSTEP_MPI=ON"), std::string_view::npos) << error.what();
  }
}

}  // namespace
}  // namespace lockstep::transport
