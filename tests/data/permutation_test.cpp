// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/sampling/permutation.h"

#include <cmath>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace lockstep::data {
namespace {

TEST(Permutation, VisitsEveryElementOnceForEveryCount) {
  for (std::uint64_t count = 1; count <= 300; ++count) {
    const Permutation permutation(count, count * 7919);
    std::vector<bool> seen(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t element = permutation(i);
      ASSERT_LT(element, count);
      EXPECT_FALSE(seen[element]) << element << " twice among " << count;
      seen[element] = true;
    }
  }
}

RC_GTEST_PROP(Permutation, StaysInsideAndApartForHugeCounts, ()) {
  const auto count = *rc::gen::suchThat(rc::gen::arbitrary<std::uint64_t>(), [](auto n) { return n >= 2; });
  const Permutation permutation(count, *rc::gen::arbitrary<std::uint64_t>());
  const auto a = *rc::gen::inRange<std::uint64_t>(0, count);
  const auto b = *rc::gen::inRange<std::uint64_t>(0, count);
  RC_ASSERT(permutation(a) < count);
  RC_ASSERT((permutation(a) == permutation(b)) == (a == b));
}

TEST(Permutation, HoldsOnTheLargestDomain) {
  const std::uint64_t count = ~std::uint64_t{0};
  const Permutation permutation(count, 3);
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 1000; ++i) seen.insert(permutation(count - 1 - i));
  EXPECT_EQ(seen.size(), 1000U);
}

// Every element comes to every place about equally often over the keys. Keys are fixed, so this cannot
// flicker; the bound is the chi-square quantile at about 1e-6.
TEST(Permutation, IsFairOverKeys) {
  constexpr int kKeys = 6000;
  for (const std::uint64_t count : {2, 3, 5, 10, 24}) {
    std::vector<std::vector<int>> times(count, std::vector<int>(count));
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      const Permutation permutation(count, key);
      for (std::uint64_t i = 0; i < count; ++i) ++times[i][permutation(i)];
    }
    const double expected = static_cast<double>(kKeys) / static_cast<double>(count);
    double chi_square = 0;
    for (const auto& row : times) {
      for (const int n : row) chi_square += (n - expected) * (n - expected) / expected;
    }
    const auto freedom = static_cast<double>((count - 1) * (count - 1));
    EXPECT_LT(chi_square, freedom + 7 * std::sqrt(2 * freedom) + 12) << count;
  }
}

TEST(Permutation, NeighboursAndKeysAreUnrelated) {
  const Permutation one(1000, 1), two(1000, 2);
  int equal = 0, steps = 0;
  for (std::uint64_t i = 0; i + 1 < 1000; ++i) {
    equal += one(i) == two(i);
    steps += one(i) + 1 == one(i + 1);
  }
  EXPECT_LT(equal, 12);
  EXPECT_LT(steps, 12);
}

// Runs of earlier versions must be continued on the same data.
TEST(Permutation, OrderIsPinned) {
  const Permutation permutation(10, 42);
  std::vector<std::uint64_t> order;
  for (std::uint64_t i = 0; i < 10; ++i) order.push_back(permutation(i));
  EXPECT_EQ(order, (std::vector<std::uint64_t>{6, 7, 9, 8, 0, 3, 4, 2, 5, 1}));
}

TEST(EpochShuffle, EveryEpochIsAnotherOrderOfEverything) {
  const EpochShuffle shuffle(100, 7, 0);
  std::vector<std::vector<std::uint64_t>> orders;
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    std::vector<std::uint64_t> order;
    for (std::uint64_t i = 0; i < 100; ++i) {
      EXPECT_EQ(shuffle.epoch_of(epoch * 100 + i), epoch);
      order.push_back(shuffle(epoch * 100 + i));
    }
    EXPECT_EQ(std::set<std::uint64_t>(order.begin(), order.end()).size(), 100U);
    for (const auto& other : orders) EXPECT_NE(order, other);
    orders.push_back(order);
  }
}

}  // namespace
}  // namespace lockstep::data
