// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/prepare/ordered_parallel.h"

#include <numeric>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace lockstep::data {
namespace {

// Squares 0 .. count - 1; `fail` names the stage and the number at which something is thrown.
struct Failure {
  std::string stage;
  int at = -1;
};

std::vector<int> squares(int threads, int count, const Failure& fail = {}) {
  std::vector<int> consumed;
  int next = 0;
  const auto check = [&](const char* stage, int number) {
    if (fail.stage == stage && fail.at == number) throw std::runtime_error(stage + std::to_string(number));
  };
  ordered_parallel(
      threads,
      [&]() -> std::optional<int> {
        check("produce", next);
        return next < count ? std::optional(next++) : std::nullopt;
      },
      [&] {
        return [&](int number) {
          check("transform", number);
          return number * number;
        };
      },
      [&](int square) {
        check("consume", static_cast<int>(consumed.size()));
        consumed.push_back(square);
      });
  return consumed;
}

TEST(OrderedParallel, ConsumesInOrder) {
  for (const int threads : {1, 2, 7}) {
    const auto consumed = squares(threads, 500);
    ASSERT_EQ(consumed.size(), 500U);
    for (int i = 0; i < 500; ++i) EXPECT_EQ(consumed[static_cast<std::size_t>(i)], i * i);
  }
  EXPECT_TRUE(squares(3, 0).empty());
}

TEST(OrderedParallel, RaisesTheFirstFailureOfEveryStage) {
  for (const int threads : {1, 4}) {
    for (const char* stage : {"produce", "transform", "consume"}) {
      try {
        squares(threads, 100, {stage, 42});
        ADD_FAILURE() << stage;
      } catch (const std::runtime_error& error) {
        EXPECT_EQ(error.what(), stage + std::string("42"));
      }
    }
  }
}

TEST(OrderedParallel, RaisesWhatKeepsATransformFromBeingMade) {
  const auto no_transform = []() -> int (*)(int) { throw std::runtime_error("no memory"); };
  for (const int threads : {1, 4}) {
    EXPECT_THROW(ordered_parallel(
                     threads, [] { return std::optional(1); }, no_transform, [](int) {}),
                 std::runtime_error);
  }
}

}  // namespace
}  // namespace lockstep::data
