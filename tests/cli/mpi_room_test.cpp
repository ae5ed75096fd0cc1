// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/mpi_room.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

TEST(MpiRoom, GrowsWithTheRanks) {
  EXPECT_GE(mpi_memory_bytes(1, {}), std::uint64_t{4} << 20);
  EXPECT_EQ(mpi_memory_bytes(6, {}), 6 * mpi_memory_bytes(1, {}));
}

TEST(MpiRoom, FollowsWhatOpenMpiIsTold) {
  const std::uint64_t usual = mpi_memory_bytes(2, {});
  const std::string segment = "OMPI_MCA_btl_vader_segment_size";
  EXPECT_EQ(mpi_memory_bytes(2, {{segment, "8388608"}}), usual + (std::uint64_t{8} << 20));
  EXPECT_EQ(mpi_memory_bytes(2, {{segment, "many"}}), usual);
  EXPECT_EQ(mpi_memory_bytes(2, {{segment, "18446744073709551615"}}), UINT64_MAX);
  EXPECT_EQ(mpi_memory_bytes(2, {{"OMPI_MCA_btl", "tcp,self"}}), 0U);
}

TEST(MpiRoom, KnowsWhoseProcessItIs) {
  EXPECT_TRUE(started_by_mpi({{"OMPI_COMM_WORLD_RANK", "0"}}));
  EXPECT_TRUE(started_by_mpi({{"PMIX_RANK", "0"}}));
  EXPECT_FALSE(started_by_mpi({{"OMPI_MCA_btl", "tcp,self"}, {"PMIX_MCA_gds", "hash"}, {"RANK", "0"}}));
}

}  // namespace
}  // namespace lockstep::cli
