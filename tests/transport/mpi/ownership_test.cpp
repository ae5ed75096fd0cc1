// SPDX-License-Identifier: Apache-2.0
//
// A process that leaves MPI to the endpoint: nobody calls MPI_Init here.
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/transport/mpi/endpoint.h"

namespace lockstep::transport {
namespace {

TEST(MpiOwnership, AnEndpointInitializesAndFinalizesMpi) {
  EXPECT_TRUE(mpi_available());
  {
    const std::unique_ptr<Endpoint> endpoint = make_mpi_endpoint();
    EXPECT_EQ(endpoint->world(), 2);
    EXPECT_EQ(endpoint->kind(1 - endpoint->rank()), "mpi");
  }
  EXPECT_THROW(make_mpi_endpoint(), UsageError) << "MPI cannot be initialized twice";
}

}  // namespace
}  // namespace lockstep::transport
