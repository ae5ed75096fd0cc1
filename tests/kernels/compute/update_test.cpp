// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "lockstep/kernels/compute/update/blocks.h"
#include "lockstep/kernels/compute/update/optimizers.h"
#include "lockstep/kernels/compute/update/vectors.h"

#include "tests/kernels/compute/gaps.h"
#include "tests/kernels/compute/tensors.h"
#include "tests/kernels/every_target.h"

namespace lockstep::kernels {
namespace {

constexpr std::size_t kSizes[] = {0, 1, 7, 100, kBlockElements, 3 * kBlockElements + 5};

std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  return Tensor::random(DType::fp32, 1, count, seed).values();
}

// The state of an optimizer over some steps.
struct State {
  State(std::size_t count, DType dtype)
      : master(random_values(count, 1)),
        first(count, 0.0F),
        second(count, 0.0F),
        working(count * size_of(dtype)),
        working_dtype(dtype) {}

  Parameters parameters(std::span<const float> gradient) {
    return {.master = master,
            .working = working.data(),
            .working_dtype = working_dtype,
            .gradient = gradient,
            .gradient_scale = 0.5F};
  }
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> all = working;
    for (const auto* values : {&master, &first, &second}) {
      const auto part = std::as_bytes(std::span(*values));
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

  std::vector<float> master, first, second;
  std::vector<std::byte> working;
  DType working_dtype;
};

constexpr AdamW kAdam = {.learning_rate = 0.01F, .weight_decay = 0.1F};
constexpr Sgd kSgd = {.learning_rate = 0.1F, .momentum = 0.9F, .weight_decay = 0.01F};

using OptimizersOnEveryTarget = EveryTarget;
INSTANTIATE_TEST_SUITE_P(Target, OptimizersOnEveryTarget, testing::ValuesIn(every_target()), target_name);

TEST_P(OptimizersOnEveryTarget, AgreeWithTheirTwins) {
  for (DType dtype : {DType::bf16, DType::fp16}) {
    for (std::size_t count : kSizes) {
      State adam(count, dtype), adam_twin(count, dtype), sgd_state(count, dtype), sgd_twin(count, dtype);
      AdamW how = kAdam;
      for (how.step = 1; how.step <= 4; ++how.step) {
        const std::vector<float> gradient = random_values(count, 10 + how.step);
        adamw(how, adam.parameters(gradient), adam.first, adam.second);
        adamw_reference(how, adam_twin.parameters(gradient), adam_twin.first, adam_twin.second);
        sgd(kSgd, sgd_state.parameters(gradient), sgd_state.first);
        sgd_reference(kSgd, sgd_twin.parameters(gradient), sgd_twin.first);
      }
      EXPECT_LE(relative_error(adam.master, adam_twin.master), 1e-6);
      EXPECT_LE(relative_error(adam.first, adam_twin.first), 1e-6);
      EXPECT_LE(relative_error(adam.second, adam_twin.second), 1e-6);
      EXPECT_LE(relative_error(sgd_state.master, sgd_twin.master), 1e-6);
      EXPECT_LE(relative_error(sgd_state.first, sgd_twin.first), 1e-6);
    }
  }
}

TEST(Optimizers, TheWorkingCopyIsTheRoundedMaster) {
  State state(1000, DType::bf16);
  const std::vector<float> gradient = random_values(1000, 5);
  adamw(kAdam, state.parameters(gradient), state.first, state.second);
  Tensor working(DType::bf16, 1, 1000);
  std::memcpy(working.matrix().data, state.working.data(), state.working.size());
  EXPECT_LE(relative_error(working.values(), state.master), 1.0 / 256);
}

TEST(Optimizers, TheFirstStepOfAdamMovesByTheLearningRate) {
  std::vector<float> master = {1.0F, 1.0F}, mean(2), square(2);
  const std::vector<float> gradient = {3.0F, -1e-3F};
  adamw({.learning_rate = 0.01F}, {.master = master, .gradient = gradient}, mean, square);
  EXPECT_NEAR(master[0], 0.99F, 1e-6);
  EXPECT_NEAR(master[1], 1.01F, 1e-6);
}

TEST(Optimizers, BitsDoNotDependOnTheNumberOfThreads) {
  const std::vector<float> gradient = random_values(200'000, 5);
  expect_same_for_any_threads([&] {
    State state(200'000, DType::bf16);
    adamw(kAdam, state.parameters(gradient), state.first, state.second);
    sgd(kSgd, state.parameters(gradient), state.first);
    return state.bytes();
  });
}

// Where a run is cut must not show: an update of parts has the bits of the update of the whole.
TEST(Optimizers, PartsGiveTheBitsOfTheWhole) {
  const std::vector<float> gradient = random_values(1003, 5);
  State whole(1003, DType::fp16), parts(1003, DType::fp16);
  adamw(kAdam, whole.parameters(gradient), whole.first, whole.second);
  for (std::size_t first = 0; first < 1003;) {
    const std::size_t count = std::min<std::size_t>(1003 - first, 1 + first / 3);
    Parameters part = parts.parameters(std::span(gradient).subspan(first, count));
    part.master = part.master.subspan(first, count);
    part.working += first * 2;
    adamw(kAdam, part, std::span(parts.first).subspan(first, count),
          std::span(parts.second).subspan(first, count));
    first += count;
  }
  EXPECT_EQ(whole.bytes(), parts.bytes());
}

using VectorsOnEveryTarget = EveryTarget;
INSTANTIATE_TEST_SUITE_P(Target, VectorsOnEveryTarget, testing::ValuesIn(every_target()), target_name);

TEST_P(VectorsOnEveryTarget, AgreeWithTheirTwins) {
  for (std::size_t count : kSizes) {
    std::vector<float> values = random_values(count, 3);
    std::vector<double> squares((count + kSquaresBlock - 1) / kSquaresBlock);
    std::vector<double> squares_twin(squares.size());
    sums_of_squares(values, squares);
    sums_of_squares_reference(values, squares_twin);
    EXPECT_EQ(squares, squares_twin);
    EXPECT_NEAR(sum_of(values), sum_of_reference(values), 1e-9 * static_cast<double>(count));
    std::vector<float> twin = values;
    scale(values, 0.3F);
    scale_reference(twin, 0.3F);
    EXPECT_EQ(values, twin);
  }
}

TEST(Vectors, TheSquaresOfABlockDoNotDependOnItsNeighbours) {
  const std::vector<float> values = random_values(3 * kSquaresBlock + 5, 3);
  std::vector<double> whole(4);
  sums_of_squares(values, whole);
  double part = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const auto rest = std::span(values).subspan(i * kSquaresBlock);
    sums_of_squares(rest.first(std::min(kSquaresBlock, rest.size())), {&part, 1});
    EXPECT_EQ(part, whole[i]);
  }
}

TEST_P(VectorsOnEveryTarget, TheFirstValueThatIsNotFiniteIsFound) {
  for (std::size_t count : kSizes) {
    std::vector<float> values = random_values(count, 3);
    EXPECT_EQ(first_not_finite(values), std::nullopt);
    EXPECT_EQ(first_not_finite_reference(values), std::nullopt);
    for (std::size_t place : {std::size_t{0}, count / 3, count / 2, count - 1}) {
      if (count == 0) continue;
      constexpr float kInfinity = std::numeric_limits<float>::infinity();
      for (float bad : {kInfinity, -kInfinity, std::nanf("")}) {
        std::vector<float> broken = values;
        broken[place] = bad;
        broken.back() = bad;
        EXPECT_EQ(first_not_finite(broken), place);
        EXPECT_EQ(first_not_finite_reference(broken), place);
      }
    }
  }
}

TEST(Vectors, BitsDoNotDependOnTheNumberOfThreads) {
  const std::vector<float> values = random_values(300'000, 3);
  expect_same_for_any_threads([&] {
    std::vector<double> sums((values.size() + kSquaresBlock - 1) / kSquaresBlock);
    sums_of_squares(values, sums);
    sums.push_back(sum_of(values));
    const auto bytes = std::as_bytes(std::span(sums));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  });
  expect_same_for_any_threads([&] {
    std::vector<float> scaled = values;
    scale(scaled, 0.3F);
    return bytes_of(scaled);
  });
}

TEST(Vectors, TheFirstOfSeveralIsFoundByAnyNumberOfThreads) {
  std::vector<float> values = random_values(300'000, 3);
  for (std::size_t place : {70'003, 70'004, 140'000, 299'999}) values[place] = std::nanf("");
  expect_same_for_any_threads([&] {
    EXPECT_EQ(first_not_finite(values), 70'003U);
    return std::vector<std::byte>();
  });
}

}  // namespace
}  // namespace lockstep::kernels
