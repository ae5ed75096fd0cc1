// SPDX-License-Identifier: Apache-2.0
#include "lockstep/plan/lanes.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::plan {
namespace {

TEST(FirstOwnership, IsEvenUnlessWeightsAreGiven) {
  spec::RunSpec run;
  run.parallelism.lanes = 8;
  EXPECT_EQ(first_ownership(run, 3), even_ownership(8, 3));
  run.parallelism.lane_weights = {1, 0, 3};
  EXPECT_EQ(first_ownership(run, 3), weighted_ownership(8, {1, 0, 3}));
  EXPECT_THROW(first_ownership(run, 2), UsageError) << "three weights for two workers";
}

}  // namespace
}  // namespace lockstep::plan
