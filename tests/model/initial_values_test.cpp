// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/initial_values.h"

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::model {
namespace {

using testing::Each;
using testing::ElementsAre;

std::vector<float> values_of(const ParameterSpec& parameter, std::uint64_t seed, std::size_t first,
                             std::size_t count) {
  std::vector<float> values(count);
  initial_values(parameter, seed, first, values);
  return values;
}

const ParameterSpec kWeight = {.name = "model.layers.0.mlp.up_proj.weight", .shape = {100, 200}};

// A run that begins with other values than it did in an earlier version is another run.
TEST(InitialValues, NeverChange) {
  EXPECT_THAT(values_of(kWeight, 1, 0, 4),
              ElementsAre(-0x1.089f74p-7F, 0x1.e3c77cp-6F, -0x1.b8c87cp-7F, 0x1.1d5e94p-6F));
  EXPECT_THAT(values_of(kWeight, 1, 19'997, 3),
              ElementsAre(-0x1.0adce2p-5F, -0x1.06122ep-8F, -0x1.7d38dcp-12F));
}

TEST(InitialValues, OfAPartAreThoseOfTheWhole) {
  const std::vector<float> whole = values_of(kWeight, 7, 0, 1000);
  for (const std::size_t first : {0, 1, 2, 333, 999}) {
    const std::vector<float> part = values_of(kWeight, 7, first, 1000 - first);
    EXPECT_EQ(part, std::vector<float>(whole.begin() + static_cast<std::ptrdiff_t>(first), whole.end()));
  }
}

TEST(InitialValues, DependOnSeedAndName) {
  ParameterSpec other = kWeight;
  other.name = "model.layers.1.mlp.up_proj.weight";
  EXPECT_NE(values_of(kWeight, 1, 0, 8), values_of(kWeight, 2, 0, 8));
  EXPECT_NE(values_of(kWeight, 1, 0, 8), values_of(other, 1, 0, 8));
  other = kWeight;
  other.shape = {200, 100};
  EXPECT_EQ(values_of(kWeight, 1, 0, 8), values_of(other, 1, 0, 8)) << "the shape has no part in it";
}

TEST(InitialValues, AreNormalWithTheDeviationAsked) {
  const std::vector<float> values = values_of(kWeight, 3, 0, 20'000);
  double sum = 0;
  double squares = 0;
  for (const float value : values) {
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 20'000, 0, 5e-4);
  EXPECT_NEAR(std::sqrt(squares / 20'000), 0.02, 5e-4);
}

TEST(InitialValues, OfNormsAndBiasesAreOnesAndZeros) {
  EXPECT_THAT(values_of({.name = "norm", .shape = {5}, .initial = Initial::ones}, 1, 0, 5), Each(1.0F));
  EXPECT_THAT(values_of({.name = "bias", .shape = {5}, .initial = Initial::zeros}, 1, 0, 5), Each(0.0F));
}

}  // namespace
}  // namespace lockstep::model
