// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/attention/attention.h"

#include <cmath>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/kernels/compute/tensors.h"
#include "tests/kernels/every_target.h"

namespace lockstep::kernels {
namespace {

AttentionShape shape_of(std::size_t batch, std::size_t length, std::size_t heads, std::size_t kv_heads,
                        std::size_t width) {
  return {batch, length, heads, kv_heads, width, 1.0F / std::sqrt(static_cast<float>(width))};
}

// Everything that one forward and backward pass reads and writes.
struct Pass {
  Pass(const AttentionShape& wanted, DType dtype)
      : shape(wanted),
        q(Tensor::random(dtype, shape.rows(), shape.heads * shape.width, 1, 8)),
        k(Tensor::random(dtype, shape.rows(), shape.kv_heads * shape.width, 2, 8)),
        v(Tensor::random(dtype, shape.rows(), shape.kv_heads * shape.width, 3)),
        dout(Tensor::random(dtype, shape.rows(), shape.heads * shape.width, 4)),
        out(dtype, shape.rows(), shape.heads * shape.width),
        dq(dtype, shape.rows(), shape.heads * shape.width, 4),
        dk(dtype, shape.rows(), shape.kv_heads * shape.width),
        dv(dtype, shape.rows(), shape.kv_heads * shape.width),
        log_sums(shape.rows() * shape.heads) {}

  AttentionInputs inputs() const { return {q.matrix(), k.matrix(), v.matrix()}; }
  AttentionGradients gradients() { return {dq.matrix(), dk.matrix(), dv.matrix()}; }
  void run() {
    attention_forward(shape, inputs(), out.matrix(), log_sums);
    attention_backward(shape, inputs(), out.matrix(), dout.matrix(), log_sums, gradients());
  }
  void run_reference() {
    attention_forward_reference(shape, inputs(), out.matrix(), log_sums);
    attention_backward_reference(shape, inputs(), dout.matrix(), gradients());
  }

  AttentionShape shape;
  Tensor q, k, v, dout, out, dq, dk, dv;
  std::vector<float> log_sums;
};

void expect_same_as_twin(const AttentionShape& shape, DType dtype) {
  SCOPED_TRACE(testing::Message() << name_of(dtype) << ", " << shape.batch << " x " << shape.length
                                  << ", heads " << shape.heads << "/" << shape.kv_heads << " of "
                                  << shape.width);
  Pass fast(shape, dtype);
  Pass plain(shape, dtype);
  fast.run();
  plain.run_reference();
  const double limit = dtype == DType::fp32 ? 2e-5 : tolerance(dtype);
  EXPECT_LE(relative_error(fast.out.values(), plain.out.values()), limit);
  EXPECT_LE(relative_error(fast.log_sums, plain.log_sums), 1e-5);
  EXPECT_LE(relative_error(fast.dq.values(), plain.dq.values()), limit);
  EXPECT_LE(relative_error(fast.dk.values(), plain.dk.values()), limit);
  EXPECT_LE(relative_error(fast.dv.values(), plain.dv.values()), limit);
}

using AttentionOnEveryTarget = EveryTarget;
INSTANTIATE_TEST_SUITE_P(Target, AttentionOnEveryTarget, testing::ValuesIn(every_target()), target_name);

TEST_P(AttentionOnEveryTarget, AgreesWithItsTwin) {
  for (DType dtype : kFloatTypes) {
    expect_same_as_twin(shape_of(1, 1, 1, 1, 1), dtype);
    expect_same_as_twin(shape_of(2, 17, 4, 4, 16), dtype);
    expect_same_as_twin(shape_of(2, 129, 6, 2, 8), dtype);   // grouped-query heads, blocks that do not divide
    expect_same_as_twin(shape_of(1, 128, 2, 1, 33), dtype);  // an odd head width
  }
}

TEST(Attention, AgreesWithItsTwinOverSeveralBlocksOfKeys) {
  expect_same_as_twin(shape_of(1, 1100, 2, 1, 16), DType::fp32);
  expect_same_as_twin(shape_of(1, 1100, 2, 1, 16), DType::bf16);
}

TEST_P(AttentionOnEveryTarget, LargeScoresDoNotOverflow) {
  AttentionShape shape = shape_of(1, 600, 1, 1, 8);
  shape.scale = 1000.0F;
  Pass pass(shape, DType::fp32);
  pass.run();
  for (const Tensor* tensor : {&pass.out, &pass.dq, &pass.dk, &pass.dv}) {
    for (float value : tensor->values()) ASSERT_TRUE(std::isfinite(value));
  }
}

TEST(Attention, LaterPlacesDoNotMatter) {
  const AttentionShape shape = shape_of(1, 300, 2, 2, 16);
  Pass first(shape, DType::bf16);
  Pass second(shape, DType::bf16);
  for (std::size_t row = 200; row < 300; ++row) second.k.matrix().row(row)[1] ^= std::byte{0x41};
  first.run();
  second.run();
  const auto before = [&](const Pass& pass) {
    std::vector<float> values = pass.out.values();
    values.resize(std::size_t{200} * 32);
    return values;
  };
  EXPECT_EQ(before(first), before(second));
  EXPECT_NE(first.out.values(), second.out.values());
}

TEST(Attention, BitsDoNotDependOnTheNumberOfThreads) {
  for (DType dtype : kFloatTypes) {
    expect_same_for_any_threads([&] {
      Pass pass(shape_of(2, 200, 6, 3, 16), dtype);
      pass.run();
      std::vector<std::byte> all;
      for (const Tensor* tensor : {&pass.out, &pass.dq, &pass.dk, &pass.dv}) {
        all.insert(all.end(), tensor->bytes().begin(), tensor->bytes().end());
      }
      return all;
    });
  }
}

TEST(Attention, RefusesShapesThatDoNotFit) {
  Pass pass(shape_of(1, 4, 4, 2, 8), DType::fp32);
  AttentionShape uneven = pass.shape;
  uneven.kv_heads = 3;
  EXPECT_THROW(attention_forward(uneven, pass.inputs(), pass.out.matrix(), pass.log_sums), UsageError);
  AttentionShape longer = pass.shape;
  longer.length = 5;
  EXPECT_THROW(attention_forward(longer, pass.inputs(), pass.out.matrix(), pass.log_sums), UsageError);
  EXPECT_THROW(
      attention_forward(pass.shape, pass.inputs(), pass.out.matrix(), std::span(pass.log_sums).first(1)),
      UsageError);
}

}  // namespace
}  // namespace lockstep::kernels
