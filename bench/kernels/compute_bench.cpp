// SPDX-License-Identifier: Apache-2.0
//
// The kernels of training at the sizes of gpt2-124m. GFLOP/s for products, GB/s for what only passes over
// memory: every byte that must be read or written is counted once.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "lockstep/base/dtype.h"
#include "lockstep/kernels/compute/activation/activation.h"
#include "lockstep/kernels/compute/attention/attention.h"
#include "lockstep/kernels/compute/bias/bias.h"
#include "lockstep/kernels/compute/convert.h"
#include "lockstep/kernels/compute/dropout/dropout.h"
#include "lockstep/kernels/compute/embedding/embedding.h"
#include "lockstep/kernels/compute/gemm/gemm.h"
#include "lockstep/kernels/compute/norm/norm.h"
#include "lockstep/kernels/compute/rotary/rotary.h"
#include "lockstep/kernels/compute/threads.h"

namespace lockstep::kernels {
namespace {

constexpr std::size_t kTokens = 1024;
constexpr std::size_t kWidth = 768;
constexpr std::size_t kHeads = 12;
constexpr std::size_t kHeadWidth = kWidth / kHeads;
constexpr std::size_t kFfn = 3072;
constexpr std::size_t kVocabulary = 50257;

// A matrix of values between -2 and 2 that repeat without a visible pattern.
class Values {
 public:
  Values(DType dtype, std::size_t rows, std::size_t columns)
      : dtype_(dtype), rows_(rows), columns_(columns), memory_(rows * columns * size_of(dtype)) {
    std::vector<float> row(columns);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j)
        row[j] = 4.0F * static_cast<float>((i * 7919 + j * 104729) % 10007) / 10007.0F - 2.0F;
      from_floats(row, matrix().row(i), dtype);
    }
  }
  Matrix matrix() { return matrix_of(memory_.data(), dtype_, rows_, columns_); }
  std::size_t bytes() const { return memory_.size(); }

 private:
  DType dtype_;
  std::size_t rows_, columns_;
  std::vector<std::byte> memory_;
};

DType dtype_of(const benchmark::State& state) {
  return static_cast<DType>(state.range(0));
}

enum class Unit : std::uint8_t { flops, bytes };

// `amount` of the unit in each call of `kernel`.
template <typename Kernel>
void measure(benchmark::State& state, Unit unit, double amount, const Kernel& kernel) {
  set_threads(static_cast<int>(state.range(1)));
  kernel();
  for (auto _ : state) {
    kernel();
    benchmark::ClobberMemory();
  }
  state.SetLabel(std::string(name_of(dtype_of(state))));
  state.counters[unit == Unit::flops ? "GFLOP/s" : "GB/s"] =
      benchmark::Counter(amount / 1e9, benchmark::Counter::kIsIterationInvariantRate);
}
template <typename Kernel>
void measure_bytes(benchmark::State& state, std::size_t bytes, const Kernel& kernel) {
  measure(state, Unit::bytes, static_cast<double>(bytes), kernel);
}

constexpr double kGemmFlops = 2.0 * kTokens * kWidth * kFfn;

void gemm_forward(benchmark::State& state) {
  Values in(dtype_of(state), kTokens, kWidth), weight(dtype_of(state), kFfn, kWidth);
  Values out(dtype_of(state), kTokens, kFfn);
  measure(state, Unit::flops, kGemmFlops,
          [&] { gemm({in.matrix()}, transposed(weight.matrix()), out.matrix()); });
}

void gemm_input_gradient(benchmark::State& state) {
  Values in(dtype_of(state), kTokens, kWidth), weight(dtype_of(state), kFfn, kWidth);
  Values out(dtype_of(state), kTokens, kFfn);
  measure(state, Unit::flops, kGemmFlops, [&] { gemm({out.matrix()}, {weight.matrix()}, in.matrix()); });
}

void gemm_weight_gradient(benchmark::State& state) {
  Values in(dtype_of(state), kTokens, kWidth), out(dtype_of(state), kTokens, kFfn);
  Values gradient(DType::fp32, kFfn, kWidth);
  measure(state, Unit::flops, kGemmFlops,
          [&] { gemm(transposed(out.matrix()), {in.matrix()}, gradient.matrix(), Store::add); });
}

struct Attention {
  explicit Attention(DType dtype)
      : qkv(dtype, kTokens, 3 * kWidth), gradients(dtype, kTokens, 3 * kWidth), out(dtype, kTokens, kWidth) {}
  static Matrix third(Values& values, std::size_t index) {
    return values.matrix().part(0, kTokens, index * kWidth, kWidth);
  }
  AttentionInputs inputs() { return {third(qkv, 0), third(qkv, 1), third(qkv, 2)}; }
  void forward() { attention_forward(shape, inputs(), out.matrix(), log_sums); }
  void backward() {
    attention_backward(shape, inputs(), out.matrix(), out.matrix(), log_sums,
                       {third(gradients, 0), third(gradients, 1), third(gradients, 2)});
  }

  AttentionShape shape{1, kTokens, kHeads, kHeads, kHeadWidth, 1.0F / std::sqrt(float{kHeadWidth})};
  Values qkv, gradients, out;
  std::vector<float> log_sums = std::vector<float>(kTokens * kHeads);
};

// One product of all queries with the keys before them.
constexpr double kScoreFlops = 1.0 * kTokens * kTokens * kWidth;

void attention_forward(benchmark::State& state) {
  Attention attention(dtype_of(state));
  measure(state, Unit::flops, 2 * kScoreFlops, [&] { attention.forward(); });
}

void attention_backward(benchmark::State& state) {
  Attention attention(dtype_of(state));
  attention.forward();
  measure(state, Unit::flops, 5 * kScoreFlops, [&] { attention.backward(); });
}

struct NormCase {
  NormCase(DType dtype, NormKind kind)
      : in(dtype, kTokens, kWidth),
        out(dtype, kTokens, kWidth),
        din(dtype, kTokens, kWidth),
        weight(dtype, 1, kWidth),
        norm{.kind = kind, .weight = weight.matrix(), .bias = {}} {
    if (kind == NormKind::layer)
      norm.bias = norm.weight;
    else
      bias_gradient.clear();
  }
  void forward() { norm_forward(norm, in.matrix(), out.matrix(), {means, scales}); }
  void backward() {
    norm_backward(norm, in.matrix(), out.matrix(), {means, scales},
                  {.in = din.matrix(), .weight = weight_gradient, .bias = bias_gradient});
  }

  Values in, out, din, weight;
  Norm norm;
  std::vector<float> means = std::vector<float>(kTokens), scales = means;
  std::vector<float> weight_gradient = std::vector<float>(kWidth), bias_gradient = weight_gradient;
};

void norm_forward(benchmark::State& state, NormKind kind) {
  NormCase norm(dtype_of(state), kind);
  measure_bytes(state, 2 * norm.in.bytes(), [&] { norm.forward(); });
}

void norm_backward(benchmark::State& state, NormKind kind) {
  NormCase norm(dtype_of(state), kind);
  norm.forward();
  measure_bytes(state, 3 * norm.in.bytes(), [&] { norm.backward(); });
}

void gelu_forward(benchmark::State& state) {
  Values in(dtype_of(state), kTokens, kFfn), out = in;
  measure_bytes(state, 2 * in.bytes(), [&] { gelu_forward(in.matrix(), out.matrix()); });
}

void gelu_backward(benchmark::State& state) {
  Values in(dtype_of(state), kTokens, kFfn), out = in, din = in;
  measure_bytes(state, 3 * in.bytes(), [&] { gelu_backward(in.matrix(), out.matrix(), din.matrix()); });
}

Matrix half(Values& values, std::size_t index) {
  return values.matrix().part(0, kTokens, index * kFfn, kFfn);
}

void swiglu_forward(benchmark::State& state) {
  Values in(dtype_of(state), kTokens, 2 * kFfn), out(dtype_of(state), kTokens, kFfn);
  measure_bytes(state, in.bytes() + out.bytes(), [&] {
    swiglu_forward({half(in, 0), half(in, 1)}, out.matrix());
  });
}

void swiglu_backward(benchmark::State& state) {
  Values in(dtype_of(state), kTokens, 2 * kFfn), din = in, out(dtype_of(state), kTokens, kFfn);
  measure_bytes(state, 2 * in.bytes() + out.bytes(), [&] {
    swiglu_backward({half(in, 0), half(in, 1)}, out.matrix(), {half(din, 0), half(din, 1)});
  });
}

void rotary(benchmark::State& state) {
  const RotaryTable table(kTokens, kHeadWidth, 10000.0);
  Values heads(dtype_of(state), kTokens, kWidth);
  measure_bytes(state, 2 * heads.bytes(),
                [&] { rotate(table, {.length = kTokens}, heads.matrix(), Rotation::forward); });
}

std::vector<std::uint32_t> some_ids() {
  std::vector<std::uint32_t> ids(kTokens);
  for (std::size_t i = 0; i < kTokens; ++i) ids[i] = static_cast<std::uint32_t>(i * i * 31 % kVocabulary);
  return ids;
}

void embedding_forward(benchmark::State& state) {
  Values table(dtype_of(state), kVocabulary, kWidth), places(dtype_of(state), kTokens, kWidth), out = places;
  const std::vector<std::uint32_t> ids = some_ids();
  measure_bytes(state, 3 * out.bytes(), [&] {
    embedding_forward(table.matrix(), ids, {places.matrix(), {.length = kTokens}}, out.matrix());
  });
}

void embedding_backward(benchmark::State& state) {
  Values table(DType::fp32, kVocabulary, kWidth), places(DType::fp32, kTokens, kWidth);
  Values out(dtype_of(state), kTokens, kWidth);
  const std::vector<std::uint32_t> ids = some_ids();
  measure_bytes(state, out.bytes() + 4 * places.bytes(), [&] {
    embedding_backward(ids, out.matrix(), table.matrix(), {places.matrix(), {.length = kTokens}});
  });
}

void bias_forward(benchmark::State& state) {
  Values rows(dtype_of(state), kTokens, kFfn), bias(dtype_of(state), 1, kFfn);
  measure_bytes(state, 2 * rows.bytes(), [&] { add_bias(rows.matrix(), bias.matrix(), rows.matrix()); });
}

void bias_backward(benchmark::State& state) {
  Values rows(dtype_of(state), kTokens, kFfn);
  std::vector<float> gradient(kFfn);
  measure_bytes(state, rows.bytes(), [&] { bias_backward(rows.matrix(), gradient); });
}

void residual(benchmark::State& state) {
  Values a(dtype_of(state), kTokens, kWidth), b = a, out = a;
  measure_bytes(state, 3 * a.bytes(), [&] { add_matrices(a.matrix(), b.matrix(), out.matrix()); });
}

void dropout(benchmark::State& state) {
  Values in(dtype_of(state), kTokens, kWidth), out = in;
  const Dropout tenth = {.probability = 0.1F, .key = 1, .stream = 2};
  measure_bytes(state, 2 * in.bytes(), [&] { dropout(tenth, in.matrix(), out.matrix()); });
}

void arguments(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"dtype", "threads"})->UseRealTime()->Unit(benchmark::kMicrosecond);
  for (DType dtype : {DType::bf16, DType::fp32}) {
    for (int count : {1, 2}) bench->Args({static_cast<int>(dtype), count});
  }
}

BENCHMARK(gemm_forward)->Apply(arguments);
BENCHMARK(gemm_input_gradient)->Apply(arguments);
BENCHMARK(gemm_weight_gradient)->Apply(arguments);
BENCHMARK(attention_forward)->Apply(arguments);
BENCHMARK(attention_backward)->Apply(arguments);
BENCHMARK_CAPTURE(norm_forward, layer, NormKind::layer)->Apply(arguments);
BENCHMARK_CAPTURE(norm_backward, layer, NormKind::layer)->Apply(arguments);
BENCHMARK_CAPTURE(norm_forward, rms, NormKind::rms)->Apply(arguments);
BENCHMARK_CAPTURE(norm_backward, rms, NormKind::rms)->Apply(arguments);
BENCHMARK(gelu_forward)->Apply(arguments);
BENCHMARK(gelu_backward)->Apply(arguments);
BENCHMARK(swiglu_forward)->Apply(arguments);
BENCHMARK(swiglu_backward)->Apply(arguments);
BENCHMARK(rotary)->Apply(arguments);
BENCHMARK(embedding_forward)->Apply(arguments);
BENCHMARK(embedding_backward)->Apply(arguments);
BENCHMARK(bias_forward)->Apply(arguments);
BENCHMARK(bias_backward)->Apply(arguments);
BENCHMARK(residual)->Apply(arguments);
BENCHMARK(dropout)->Apply(arguments);

}  // namespace
}  // namespace lockstep::kernels
