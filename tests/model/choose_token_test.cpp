// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/choose_token.h"

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/philox.h"

namespace lockstep::model {
namespace {

const std::vector<float> kLogits = {0.0F, 2.0F, 1.0F, -1.0F, 2.0F};

std::vector<double> shares(const std::vector<float>& logits, const Sampling& sampling) {
  constexpr int kDraws = 40'000;
  std::vector<double> counts(logits.size());
  for (int i = 0; i < kDraws; ++i) counts[choose_token(logits, sampling, philox64(1, 0, i))] += 1.0 / kDraws;
  return counts;
}

TEST(ChooseToken, WithoutTemperatureItIsTheFirstOfTheMostLikely) {
  for (std::uint64_t random : {std::uint64_t{0}, ~std::uint64_t{0}}) {
    EXPECT_EQ(choose_token(kLogits, {.temperature = 0}, random), 1U);
  }
}

TEST(ChooseToken, FollowsTheProbabilities) {
  for (const double temperature : {0.5, 1.0, 2.0}) {
    double sum = 0;
    for (const float logit : kLogits) sum += std::exp(logit / temperature);
    const std::vector<double> found = shares(kLogits, {.temperature = temperature});
    for (std::size_t i = 0; i < kLogits.size(); ++i) {
      EXPECT_NEAR(found[i], std::exp(kLogits[i] / temperature) / sum, 0.01) << temperature << ", " << i;
    }
  }
}

TEST(ChooseToken, TopKKeepsTheMostLikely) {
  EXPECT_EQ(choose_token(kLogits, {.top_k = 1}, ~std::uint64_t{0}), 1U);
  const std::vector<double> found = shares(kLogits, {.top_k = 3});
  EXPECT_EQ(found[0] + found[3], 0);
  EXPECT_GT(found[1], 0);
  EXPECT_GT(found[2], 0);
  EXPECT_GT(found[4], 0);
  EXPECT_EQ(shares(kLogits, {.top_k = 100}), shares(kLogits, {}));
}

TEST(ChooseToken, TopPKeepsTheFewestThatReachIt) {
  // Probabilities: 0.057, 0.42, 0.155, 0.021, 0.42 nearly.
  const auto kept = [](double p) {
    std::set<std::size_t> tokens;
    const std::vector<double> found = shares(kLogits, {.top_p = p});
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i] > 0) tokens.insert(i);
    }
    return tokens;
  };
  EXPECT_EQ(kept(0.1), (std::set<std::size_t>{1}));
  EXPECT_EQ(kept(0.5), (std::set<std::size_t>{1, 4}));
  EXPECT_EQ(kept(0.9), (std::set<std::size_t>{1, 2, 4}));
  EXPECT_EQ(kept(1.0), (std::set<std::size_t>{0, 1, 2, 3, 4}));
}

TEST(ChooseToken, TheLastRandomNumberStaysInside) {
  for (const double temperature : {1e-3, 1.0, 1e3}) {
    EXPECT_LT(choose_token(kLogits, {.temperature = temperature}, ~std::uint64_t{0}), kLogits.size());
  }
}

TEST(ChooseToken, RefusesLogitsThatAreNotFinite) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_THROW(choose_token(std::vector{1.0F, bad}, {}, 0), UsageError);
  }
}

}  // namespace
}  // namespace lockstep::model
