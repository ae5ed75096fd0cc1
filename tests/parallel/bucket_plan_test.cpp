// SPDX-License-Identifier: Apache-2.0
#include "lockstep/parallel/data/bucket_plan.h"

#include <gmock/gmock.h>

namespace lockstep::parallel {
namespace {

using ::testing::ElementsAre;

TEST(BucketPlan, ClosesABucketWhenItIsFull) {
  const std::vector<GradientSize> sizes = {
      {DType::fp32, 100}, {DType::fp32, 4}, {DType::fp32, 4}, {DType::fp32, 4}};
  const std::vector<std::size_t> order = {3, 2, 1, 0};
  EXPECT_THAT(plan_buckets(sizes, order, 8), ElementsAre(ElementsAre(3U, 2U), ElementsAre(1U, 0U)));
  EXPECT_THAT(plan_buckets(sizes, order, 1),
              ElementsAre(ElementsAre(3U), ElementsAre(2U), ElementsAre(1U), ElementsAre(0U)));
  EXPECT_THAT(plan_buckets(sizes, order, 1000), ElementsAre(ElementsAre(3U, 2U, 1U, 0U)));
}

TEST(BucketPlan, KeepsDtypesApartAndOrdersBucketsByTheirLastParameter) {
  const std::vector<GradientSize> sizes = {
      {DType::fp32, 4}, {DType::bf16, 2}, {DType::fp32, 4}, {DType::bf16, 2}, {DType::fp32, 4}};
  const std::vector<std::size_t> order = {0, 1, 2, 3, 4};
  EXPECT_THAT(plan_buckets(sizes, order, 8),
              ElementsAre(ElementsAre(0U, 2U), ElementsAre(1U, 3U), ElementsAre(4U)));
  EXPECT_THAT(plan_buckets(sizes, order, 1000), ElementsAre(ElementsAre(1U, 3U), ElementsAre(0U, 2U, 4U)));
}

TEST(BucketPlan, HasNoBucketForNoParameter) {
  EXPECT_TRUE(plan_buckets({}, {}, 8).empty());
}

}  // namespace
}  // namespace lockstep::parallel
