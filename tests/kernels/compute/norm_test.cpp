// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/norm/norm.h"

#include <utility>

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

#include "tests/kernels/compute/gaps.h"
#include "tests/kernels/compute/tensors.h"
#include "tests/kernels/every_target.h"

namespace lockstep::kernels {
namespace {

struct Case {
  NormKind kind;
  bool with_bias;
  Store store;
};

// Everything that one forward and backward pass reads and writes.
struct Pass {
  Pass(const Case& wanted, DType dtype, std::size_t rows, std::size_t columns)
      : weight(Tensor::random(dtype, 1, columns, 1)),
        bias(Tensor::random(dtype, 1, columns, 2)),
        in(Tensor::random(dtype, rows, columns, 3, 5)),
        dout(Tensor::random(dtype, rows, columns, 4, 3)),
        out(dtype, rows, columns, 2),
        din(Tensor::random(dtype, rows, columns, 5, 7)),
        means(rows),
        scales(rows),
        dweight(Tensor::random(DType::fp32, 1, columns, 6).values()),
        dbias(wanted.with_bias ? columns : 0, 1.0F),
        norm{.kind = wanted.kind, .epsilon = 1e-5F, .weight = weight.matrix(), .bias = {}},
        store(wanted.store) {
    if (wanted.with_bias) norm.bias = std::as_const(bias).matrix();
  }
  Pass(const Pass&) = delete;

  NormStatistics statistics() { return {means, scales}; }
  NormGradients gradients() { return {din.matrix(), store, dweight, dbias}; }
  void run() {
    norm_forward(norm, in.matrix(), out.matrix(), statistics());
    norm_backward(norm, in.matrix(), dout.matrix(), statistics(), gradients());
  }
  void run_reference() {
    norm_forward_reference(norm, in.matrix(), out.matrix(), statistics());
    norm_backward_reference(norm, in.matrix(), dout.matrix(), statistics(), gradients());
  }

  Tensor weight, bias, in, dout, out, din;
  std::vector<float> means, scales, dweight, dbias;
  Norm norm;
  Store store;
};

constexpr Case kCases[] = {{NormKind::layer, true, Store::replace},
                           {NormKind::layer, false, Store::add},
                           {NormKind::rms, false, Store::replace},
                           {NormKind::rms, false, Store::add}};

void expect_same_as_twin(const Case& wanted, DType dtype, std::size_t rows, std::size_t columns) {
  SCOPED_TRACE(testing::Message() << name_of(dtype) << ", " << rows << " x " << columns << ", rms "
                                  << (wanted.kind == NormKind::rms) << ", bias " << wanted.with_bias);
  Pass fast(wanted, dtype, rows, columns);
  Pass plain(wanted, dtype, rows, columns);
  fast.run();
  plain.run_reference();
  EXPECT_LE(relative_error(fast.out.values(), plain.out.values()), tolerance(dtype));
  EXPECT_LE(relative_error(fast.means, plain.means), 1e-6);
  EXPECT_LE(relative_error(fast.scales, plain.scales), 1e-6);
  EXPECT_LE(relative_error(fast.din.values(), plain.din.values()), tolerance(dtype));
  EXPECT_LE(relative_error(fast.dweight, plain.dweight), 1e-5);
  EXPECT_LE(relative_error(fast.dbias, plain.dbias), 1e-5);
  expect_gaps_untouched(fast.out);
  expect_gaps_untouched(fast.din);
}

using NormOnEveryTarget = EveryTarget;
INSTANTIATE_TEST_SUITE_P(Target, NormOnEveryTarget, testing::ValuesIn(every_target()), target_name);

TEST_P(NormOnEveryTarget, AgreesWithItsTwin) {
  for (const Case& wanted : kCases) {
    for (DType dtype : kFloatTypes) {
      expect_same_as_twin(wanted, dtype, 3, 5);
      expect_same_as_twin(wanted, dtype, 17, 33);
      expect_same_as_twin(wanted, dtype, 1100, 100);  // more rows than blocks of the smallest size
      expect_same_as_twin(wanted, dtype, 5, 3001);
    }
  }
}

TEST(Norm, MayWriteOverItsInput) {
  const Case wanted = {NormKind::layer, true, Store::replace};
  Pass apart(wanted, DType::bf16, 9, 40);
  Pass over(wanted, DType::bf16, 9, 40);
  norm_forward(apart.norm, apart.in.matrix(), apart.out.matrix(), apart.statistics());
  norm_forward(over.norm, over.in.matrix(), over.in.matrix(), over.statistics());
  EXPECT_EQ(over.in.values(), apart.out.values());
}

TEST(Norm, LargeMeansDoNotDrownTheSpread) {
  const Case wanted = {NormKind::layer, false, Store::replace};
  Pass pass(wanted, DType::fp32, 1, 4);
  const float far_away[] = {4001.0F, 4002.0F, 4003.0F, 4004.0F};
  norm_forward(pass.norm, matrix_of(static_cast<const void*>(far_away), DType::fp32, 1, 4), pass.out.matrix(),
               pass.statistics());
  EXPECT_FLOAT_EQ(pass.means[0], 4002.5F);
  EXPECT_NEAR(pass.scales[0], 0.894423F, 1e-5F);  // 1 / sqrt(1.25 + 1e-5)
}

TEST(Norm, NoRowsChangeNothing) {
  Pass pass({NormKind::layer, true, Store::replace}, DType::bf16, 0, 8);
  const std::vector<float> before = pass.dweight;
  pass.run();
  EXPECT_EQ(pass.dweight, before);
  EXPECT_EQ(pass.dbias, std::vector<float>(8, 1.0F));
}

TEST(Norm, BitsDoNotDependOnTheNumberOfThreads) {
  for (const Case& wanted : kCases) {
    for (DType dtype : kFloatTypes) {
      expect_same_for_any_threads([&] {
        Pass pass(wanted, dtype, 333, 130);
        pass.run();
        return joined({pass.out.bytes(), pass.din.bytes(), bytes_of(pass.scales), bytes_of(pass.dweight),
                       bytes_of(pass.dbias)});
      });
    }
  }
}

TEST(Norm, RefusesWhatDoesNotFit) {
  Pass pass({NormKind::layer, true, Store::replace}, DType::bf16, 4, 8);
  Tensor wide(DType::fp32, 4, 8);
  EXPECT_THROW(norm_forward(pass.norm, pass.in.matrix(), wide.matrix(), pass.statistics()), UsageError);
  EXPECT_THROW(norm_forward(pass.norm, wide.matrix(), wide.matrix(), pass.statistics()), UsageError);
  NormStatistics few = pass.statistics();
  few.means = few.means.first(3);
  EXPECT_THROW(norm_forward(pass.norm, pass.in.matrix(), pass.out.matrix(), few), UsageError);
  NormGradients without_bias = pass.gradients();
  without_bias.bias = {};
  EXPECT_THROW(
      norm_backward(pass.norm, pass.in.matrix(), pass.dout.matrix(), pass.statistics(), without_bias),
      UsageError);
  pass.norm.kind = NormKind::rms;
  EXPECT_THROW(norm_forward(pass.norm, pass.in.matrix(), pass.out.matrix(), pass.statistics()), UsageError);
}

}  // namespace
}  // namespace lockstep::kernels
