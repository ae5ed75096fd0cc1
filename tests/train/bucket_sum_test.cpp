// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/bucket_sum.h"

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

TEST(BucketSum, KnowsWhenTheLanesOfHostsAreSubtreesOfASize) {
  EXPECT_TRUE(hosts_own_subtrees(even_ownership(8, 4), 2));
  EXPECT_TRUE(hosts_own_subtrees({{0, 4, 4, 5, 8}}, 2));
  EXPECT_TRUE(hosts_own_subtrees({{0, 1, 2, 4, 5, 8, 8}}, 2));
  EXPECT_FALSE(hosts_own_subtrees({{0, 2, 5, 6, 8}}, 2));
  EXPECT_FALSE(hosts_own_subtrees({{0, 0, 0, 6, 8}}, 2));
  EXPECT_FALSE(hosts_own_subtrees(even_ownership(8, 6), 3)) << "three do not divide a power of two";
  EXPECT_TRUE(hosts_own_subtrees({{0, 3, 8}}, 1));
}

}  // namespace
}  // namespace lockstep::train
