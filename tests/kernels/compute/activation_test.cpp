// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/activation/activation.h"

#include <cmath>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/kernels/compute/gaps.h"
#include "tests/kernels/compute/tensors.h"
#include "tests/kernels/every_target.h"

namespace lockstep::kernels {
namespace {

struct Size {
  std::size_t rows, columns;
};
constexpr Size kSizes[] = {{0, 5}, {1, 1}, {7, 33}, {100, 257}};

void expect_gelu(DType dtype, Size size) {
  SCOPED_TRACE(testing::Message() << name_of(dtype) << ", " << size.rows << " x " << size.columns);
  const Tensor in = Tensor::random(dtype, size.rows, size.columns, 1, 3);
  const Tensor dout = Tensor::random(dtype, size.rows, size.columns, 2, 5);
  Tensor found(dtype, size.rows, size.columns, 2);
  Tensor expected = found;
  gelu_forward(in.matrix(), found.matrix());
  gelu_forward_reference(in.matrix(), expected.matrix());
  EXPECT_LE(relative_error(found.values(), expected.values()), tolerance(dtype));
  gelu_backward(in.matrix(), dout.matrix(), found.matrix());
  gelu_backward_reference(in.matrix(), dout.matrix(), expected.matrix());
  EXPECT_LE(relative_error(found.values(), expected.values()), tolerance(dtype));
  expect_gaps_untouched(found);
}

using GeluOnEveryTarget = EveryTarget;
INSTANTIATE_TEST_SUITE_P(Target, GeluOnEveryTarget, testing::ValuesIn(every_target()), target_name);

TEST_P(GeluOnEveryTarget, AgreesWithItsTwin) {
  for (DType dtype : kFloatTypes) {
    for (const Size& size : kSizes) expect_gelu(dtype, size);
  }
}

TEST(Gelu, IsTheIdentityOrNothingFarFromZero) {
  const float in[] = {1e4F, -1e4F, 3e38F, -3e38F, 0.0F};
  const float ones[] = {1.0F, 1.0F, 1.0F, 1.0F, 1.0F};
  float out[5];
  gelu_forward(matrix_of(static_cast<const void*>(in), DType::fp32, 1, 5), matrix_of(out, DType::fp32, 1, 5));
  EXPECT_EQ(out[0], 1e4F);
  EXPECT_EQ(out[1], 0.0F);
  EXPECT_EQ(out[2], 3e38F);
  EXPECT_EQ(out[3], 0.0F);
  EXPECT_EQ(out[4], 0.0F);
  gelu_backward(matrix_of(static_cast<const void*>(in), DType::fp32, 1, 2),
                matrix_of(static_cast<const void*>(ones), DType::fp32, 1, 2),
                matrix_of(out, DType::fp32, 1, 2));
  EXPECT_EQ(out[0], 1.0F);
  EXPECT_EQ(out[1], 0.0F);
}

// Gate and up are halves of one matrix, as one product makes them.
struct Halves {
  Halves(DType dtype, Size size)
      : both(Tensor::random(dtype, size.rows, 2 * size.columns, 1, 3)),
        dout(Tensor::random(dtype, size.rows, size.columns, 2, 5)),
        out(dtype, size.rows, size.columns, 1),
        dboth(dtype, size.rows, 2 * size.columns, 2),
        rows(size.rows),
        columns(size.columns) {}

  SwigluInputs inputs() {
    return {both.matrix().part(0, rows, 0, columns), both.matrix().part(0, rows, columns, columns)};
  }
  SwigluGradients gradients() {
    return {dboth.matrix().part(0, rows, 0, columns), dboth.matrix().part(0, rows, columns, columns)};
  }
  void run() {
    swiglu_forward(inputs(), out.matrix());
    swiglu_backward(inputs(), dout.matrix(), gradients());
  }
  void run_reference() {
    swiglu_forward_reference(inputs(), out.matrix());
    swiglu_backward_reference(inputs(), dout.matrix(), gradients());
  }

  Tensor both, dout, out, dboth;
  std::size_t rows, columns;
};

using SwigluOnEveryTarget = EveryTarget;
INSTANTIATE_TEST_SUITE_P(Target, SwigluOnEveryTarget, testing::ValuesIn(every_target()), target_name);

TEST_P(SwigluOnEveryTarget, AgreesWithItsTwin) {
  for (DType dtype : kFloatTypes) {
    for (const Size& size : kSizes) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << ", " << size.rows << " x " << size.columns);
      Halves fast(dtype, size);
      Halves plain(dtype, size);
      fast.run();
      plain.run_reference();
      EXPECT_LE(relative_error(fast.out.values(), plain.out.values()), tolerance(dtype));
      EXPECT_LE(relative_error(fast.dboth.values(), plain.dboth.values()), tolerance(dtype));
      expect_gaps_untouched(fast.out);
      expect_gaps_untouched(fast.dboth);
    }
  }
}

TEST(Swiglu, GradientsMayReplaceTheInputs) {
  for (DType dtype : kFloatTypes) {
    Halves apart(dtype, {9, 21});
    Halves over(dtype, {9, 21});
    apart.run();
    const Matrix both = over.both.matrix();
    swiglu_backward(over.inputs(), over.dout.matrix(), {both.part(0, 9, 0, 21), both.part(0, 9, 21, 21)});
    EXPECT_EQ(over.both.values(), apart.dboth.values());
  }
}

TEST(Activation, BitsDoNotDependOnTheNumberOfThreads) {
  for (DType dtype : kFloatTypes) {
    expect_same_for_any_threads([&] {
      Halves swiglu(dtype, {150, 77});
      swiglu.run();
      const Tensor in = Tensor::random(dtype, 150, 77, 1);
      Tensor out(dtype, 150, 77);
      Tensor din(dtype, 150, 77);
      gelu_forward(in.matrix(), out.matrix());
      gelu_backward(in.matrix(), swiglu.dout.matrix(), din.matrix());
      return joined({swiglu.out.bytes(), swiglu.dboth.bytes(), out.bytes(), din.bytes()});
    });
  }
}

TEST(Activation, WhereARowEndsDoesNotShow) {
  const Tensor in = Tensor::random(DType::fp32, 1, 64, 1);
  Tensor whole(DType::fp32, 1, 64);
  Tensor parts(DType::fp32, 1, 64);
  gelu_forward(in.matrix(), whole.matrix());
  for (std::size_t first = 0; first < 64; first += 16) {
    for (std::size_t half : {0, 9})
      gelu_forward(in.matrix().part(0, 1, first + half, half == 0 ? 9 : 7),
                   parts.matrix().part(0, 1, first + half, half == 0 ? 9 : 7));
  }
  EXPECT_EQ(parts.values(), whole.values());
}

TEST(Activation, RefusesWhatDoesNotFit) {
  const Tensor in(DType::bf16, 2, 3);
  Tensor wide(DType::fp32, 2, 3);
  Tensor longer(DType::bf16, 3, 3);
  Tensor same(DType::bf16, 2, 3);
  EXPECT_THROW(gelu_forward(in.matrix(), wide.matrix()), UsageError);
  EXPECT_THROW(gelu_backward(in.matrix(), in.matrix(), longer.matrix()), UsageError);
  EXPECT_THROW(swiglu_forward({in.matrix(), longer.matrix()}, same.matrix()), UsageError);
  EXPECT_THROW(swiglu_backward({in.matrix(), in.matrix()}, in.matrix(), {same.matrix(), wide.matrix()}),
               UsageError);
}

}  // namespace
}  // namespace lockstep::kernels
