// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/arithmetic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::kernels {
namespace {

using ::testing::ContainsRegex;

TEST(Arithmetic, IsOneThingForEachDtype) {
  const Arithmetic& fp32 = arithmetic_of(DType::fp32);
  EXPECT_EQ(&arithmetic_of(DType::fp32), &fp32);
  EXPECT_FALSE(arithmetic_of(DType::bf16).digest == fp32.digest);
  EXPECT_FALSE(arithmetic_of(DType::fp16).digest == fp32.digest);
  EXPECT_FALSE(arithmetic_of(DType::fp16).digest == arithmetic_of(DType::bf16).digest);
  EXPECT_THAT(to_text(fp32), ContainsRegex("^[A-Z0-9_]+, oneDNN [0-9.]+ for [^()]+ \\([0-9a-f]{32}\\)$"));
}

TEST(Arithmetic, IsComparedByItsDigest) {
  const Arithmetic& here = arithmetic_of(DType::fp32);
  EXPECT_TRUE(has_digest_of(here, to_text(here)));
  EXPECT_TRUE(has_digest_of(here, to_text({.name = "another", .digest = here.digest})));
  EXPECT_FALSE(has_digest_of(here, to_text({.name = here.name, .digest = {.high = 1, .low = 2}})));
  EXPECT_FALSE(has_digest_of(here, ""));
}

}  // namespace
}  // namespace lockstep::kernels
