// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/loss/head_loss.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/kernels/compute/tensors.h"

namespace lockstep::kernels {
namespace {

std::vector<std::uint32_t> some_targets(std::size_t tokens, std::size_t vocabulary) {
  std::vector<std::uint32_t> targets(tokens);
  for (std::size_t i = 0; i < tokens; ++i) {
    targets[i] = i % 7 == 3 ? kIgnoredTarget : static_cast<std::uint32_t>((i * 2654435761U) % vocabulary);
  }
  return targets;
}

struct Head {
  Head(DType dtype, std::size_t tokens, std::size_t width, std::size_t vocabulary)
      : x(Tensor::random(dtype, tokens, width, 1, 8)),
        weight(Tensor::random(dtype, vocabulary, width, 2)),
        dx(dtype, tokens, width),
        dweight(Tensor::random(DType::fp32, vocabulary, width, 3)),
        targets(some_targets(tokens, vocabulary)),
        losses(tokens, -1.0F) {}

  HeadInputs inputs() const { return {x.matrix(), weight.matrix(), targets}; }
  HeadGradients gradients() { return {.scale = 0.25F, .x = dx.matrix(), .weight = dweight.matrix()}; }

  Tensor x, weight, dx, dweight;
  std::vector<std::uint32_t> targets;
  std::vector<float> losses;
};

void expect_same_as_twin(DType dtype, std::size_t tokens, std::size_t width, std::size_t vocabulary) {
  SCOPED_TRACE(testing::Message() << name_of(dtype) << ", " << tokens << " x " << width << ", "
                                  << vocabulary);
  Head fast(dtype, tokens, width, vocabulary);
  Head plain(dtype, tokens, width, vocabulary);
  head_loss(fast.inputs(), fast.losses, fast.gradients());
  head_loss_reference(plain.inputs(), plain.losses, plain.gradients());
  const double limit = dtype == DType::fp32 ? 1e-5 : tolerance(dtype);
  EXPECT_LE(relative_error(fast.losses, plain.losses), 1e-5);
  EXPECT_LE(relative_error(fast.dx.values(), plain.dx.values()), limit);
  EXPECT_LE(relative_error(fast.dweight.values(), plain.dweight.values()), limit);

  std::vector<float> alone(tokens);
  head_loss(fast.inputs(), alone);
  EXPECT_EQ(alone, fast.losses) << "the loss without gradients has the same bits";
}

TEST(HeadLoss, AgreesWithItsTwin) {
  for (DType dtype : kFloatTypes) {
    expect_same_as_twin(dtype, 1, 1, 1);
    expect_same_as_twin(dtype, 5, 8, 3);
    expect_same_as_twin(dtype, 40, 24, 301);
    expect_same_as_twin(dtype, kLossChunk + 9, 8, 33);
  }
}

TEST(HeadLoss, NoTokensAreNoWork) {
  Head head(DType::fp32, 0, 8, 4);
  const std::vector<float> before = head.dweight.values();
  head_loss(head.inputs(), head.losses, head.gradients());
  EXPECT_EQ(head.dweight.values(), before);
}

TEST(HeadLoss, IgnoredTokensHaveNeitherLossNorGradient) {
  Head head(DType::bf16, 4, 8, 16);
  head.targets.assign(4, kIgnoredTarget);
  const std::vector<float> before = head.dweight.values();
  head_loss(head.inputs(), head.losses, head.gradients());
  EXPECT_EQ(head.losses, std::vector<float>(4, 0.0F));
  EXPECT_EQ(head.dx.values(), std::vector<float>(4 * 8, 0.0F));
  EXPECT_EQ(head.dweight.values(), before);
}

TEST(HeadLoss, LargeLogitsDoNotOverflow) {
  Head head(DType::fp32, 3, 4, 5);
  for (std::size_t i = 0; i < 3; ++i) {
    auto* row = reinterpret_cast<float*>(head.x.matrix().row(i));
    for (std::size_t j = 0; j < 4; ++j) row[j] *= 1e4F;
  }
  head_loss(head.inputs(), head.losses, head.gradients());
  for (float loss : head.losses) EXPECT_TRUE(loss >= 0 && loss < 1e6F);
  for (float value : head.dx.values()) EXPECT_TRUE(value == value);
}

TEST(HeadLoss, BitsDoNotDependOnTheNumberOfThreads) {
  for (DType dtype : kFloatTypes) {
    expect_same_for_any_threads([&] {
      Head head(dtype, 600, 64, 900);
      head_loss(head.inputs(), head.losses, head.gradients());
      std::vector<std::byte> all = head.dx.bytes();
      all.insert(all.end(), head.dweight.bytes().begin(), head.dweight.bytes().end());
      return all;
    });
  }
}

TEST(HeadLoss, RefusesTargetsOutsideTheVocabulary) {
  Head head(DType::fp32, 4, 8, 16);
  head.targets[2] = 16;
  try {
    head_loss(head.inputs(), head.losses);
    FAIL() << "must throw";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "head_loss: target 16 of token 2 is not in the vocabulary of 16");
  }
  head.targets.pop_back();
  EXPECT_THROW(head_loss(head.inputs(), head.losses), UsageError);
}

}  // namespace
}  // namespace lockstep::kernels
