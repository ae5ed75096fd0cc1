// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/dtype.h"

#include <set>
#include <string_view>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

TEST(DType, NamesAreParsedBackAndDiffer) {
  std::set<std::string_view> names;
  for (DType dtype : kAllDTypes) {
    EXPECT_EQ(parse_dtype(name_of(dtype)), dtype);
    names.insert(name_of(dtype));
  }
  EXPECT_EQ(names.size(), kAllDTypes.size());
}

TEST(DType, SizesAreThoseOfTheElements) {
  EXPECT_EQ(size_of(DType::fp32), sizeof(float));
  EXPECT_EQ(size_of(DType::fp64), sizeof(double));
  EXPECT_EQ(size_of(DType::bf16), 2U);
  EXPECT_EQ(size_of(DType::fp16), 2U);
  EXPECT_EQ(size_of(DType::int32), 4U);
  EXPECT_EQ(size_of(DType::int64), 8U);
  EXPECT_EQ(size_of(DType::uint8), 1U);
}

// Frames carry these numbers between versions.
TEST(DType, NumbersStay) {
  EXPECT_EQ(static_cast<int>(DType::fp32), 0);
  EXPECT_EQ(static_cast<int>(DType::bf16), 1);
  EXPECT_EQ(static_cast<int>(DType::fp16), 2);
  EXPECT_EQ(static_cast<int>(DType::fp64), 3);
  EXPECT_EQ(static_cast<int>(DType::int32), 4);
  EXPECT_EQ(static_cast<int>(DType::int64), 5);
  EXPECT_EQ(static_cast<int>(DType::uint8), 6);
}

TEST(DType, OneFromAForeignFrameIsUnknownAndHasNoSize) {
  const auto foreign = static_cast<DType>(200);
  EXPECT_EQ(name_of(foreign), "unknown");
  EXPECT_EQ(size_of(foreign), 0U);
}

TEST(DType, RefusesOtherNamesAndListsItsOwn) {
  for (std::string_view name : {"", "float", "FP32", "unknown"}) {
    try {
      parse_dtype(name);
      FAIL() << "accepted '" << name << "'";
    } catch (const UsageError& error) {
      EXPECT_EQ(std::string_view(error.what()),
                "unknown dtype '" + std::string(name) +
                    "': expected one of fp32, bf16, fp16, fp64, int32, int64, uint8");
    }
  }
}

}  // namespace
}  // namespace lockstep
