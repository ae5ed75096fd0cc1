// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/rotary/rotary.h"

#include <cmath>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/kernels/compute/gaps.h"
#include "tests/kernels/compute/tensors.h"
#include "tests/kernels/every_target.h"

namespace lockstep::kernels {
namespace {

constexpr double kTheta = 10000.0;

struct Case {
  std::size_t batch, heads, width;
  Places places;
};
constexpr Case kCases[] = {{1, 1, 2, {.length = 1}},
                           {2, 3, 10, {.length = 9}},
                           {1, 4, 64, {.length = 130}},
                           {2, 2, 34, {.length = 3, .first_place = 77}}};

using RotaryOnEveryTarget = EveryTarget;
INSTANTIATE_TEST_SUITE_P(Target, RotaryOnEveryTarget, testing::ValuesIn(every_target()), target_name);

TEST_P(RotaryOnEveryTarget, AgreesWithItsTwin) {
  for (DType dtype : kFloatTypes) {
    for (const auto& [batch, heads, width, places] : kCases) {
      for (Rotation rotation : {Rotation::forward, Rotation::backward}) {
        SCOPED_TRACE(testing::Message() << name_of(dtype) << ", heads " << heads << " of " << width);
        const RotaryTable table(200, width, kTheta);
        Tensor found = Tensor::random(dtype, batch * places.length, heads * width, 1, 5);
        Tensor expected = found;
        rotate(table, places, found.matrix(), rotation);
        rotate_reference(width, kTheta, places, expected.matrix(), rotation);
        EXPECT_LE(relative_error(found.values(), expected.values()), tolerance(dtype));
        expect_gaps_untouched(found);
      }
    }
  }
}

TEST(Rotary, TurnsTheFirstPairByThePlace) {
  const RotaryTable table(8, 4, kTheta);
  float head[] = {1.0F, 1.0F, 0.0F, 0.0F};  // pairs (0, 2) and (1, 3)
  rotate(table, {.length = 1, .first_place = 5}, matrix_of(head, DType::fp32, 1, 4), Rotation::forward);
  EXPECT_FLOAT_EQ(head[0], std::cos(5.0F));
  EXPECT_FLOAT_EQ(head[2], std::sin(5.0F));
  EXPECT_FLOAT_EQ(head[1], std::cos(0.05F));  // 10000^(-2/4) = 0.01
  EXPECT_FLOAT_EQ(head[3], std::sin(0.05F));
}

TEST(Rotary, BackwardIsTheInverse) {
  const RotaryTable table(100, 16, 500000.0);
  const Tensor before = Tensor::random(DType::fp32, 100, 48, 1);
  Tensor after = before;
  rotate(table, {.length = 100}, after.matrix(), Rotation::forward);
  EXPECT_GT(relative_error(after.values(), before.values()), 0.1);
  rotate(table, {.length = 100}, after.matrix(), Rotation::backward);
  EXPECT_LE(relative_error(after.values(), before.values()), 1e-6);
}

TEST(Rotary, NoRowsAreFine) {
  const RotaryTable table(4, 2, kTheta);
  Tensor none(DType::bf16, 0, 6);
  EXPECT_NO_THROW(rotate(table, {}, none.matrix(), Rotation::forward));
}

TEST(Rotary, BitsDoNotDependOnTheNumberOfThreads) {
  const RotaryTable table(100, 18, kTheta);
  for (DType dtype : kFloatTypes) {
    expect_same_for_any_threads([&] {
      Tensor heads = Tensor::random(dtype, 200, 54, 1);
      rotate(table, {.length = 100}, heads.matrix(), Rotation::forward);
      return heads.bytes();
    });
  }
}

TEST(Rotary, RefusesWhatDoesNotFit) {
  EXPECT_THROW(RotaryTable(4, 3, kTheta), UsageError);
  EXPECT_THROW(RotaryTable(4, 0, kTheta), UsageError);
  EXPECT_THROW(RotaryTable(4, 2, 0.0), UsageError);
  EXPECT_THROW(RotaryTable(4, 2, std::nan("")), UsageError);
  const RotaryTable table(4, 4, kTheta);
  Tensor part_of_a_head(DType::fp32, 4, 6);
  EXPECT_THROW(rotate(table, {.length = 4}, part_of_a_head.matrix(), Rotation::forward), UsageError);
  Tensor heads(DType::fp32, 4, 8);
  EXPECT_THROW(rotate(table, {.length = 3}, heads.matrix(), Rotation::forward), UsageError);
  EXPECT_THROW(rotate(table, {.length = 0}, heads.matrix(), Rotation::forward), UsageError);
  EXPECT_THROW(rotate(table, {.length = 4, .first_place = 1}, heads.matrix(), Rotation::forward), UsageError);
  EXPECT_THROW(rotate(table, {.length = 4, .first_place = 5}, heads.matrix(), Rotation::forward), UsageError);
}

}  // namespace
}  // namespace lockstep::kernels
