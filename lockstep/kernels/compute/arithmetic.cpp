// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernels/compute/arithmetic.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include "lockstep/base/error.h"
#include "lockstep/base/philox.h"
#include "lockstep/kernels/compute/activation/activation.h"
#include "lockstep/kernels/compute/attention/attention.h"
#include "lockstep/kernels/compute/convert.h"
#include "lockstep/kernels/compute/gemm/gemm.h"
#include "lockstep/kernels/compute/gemm/onednn.h"
#include "lockstep/kernels/compute/loss/head_loss.h"
#include "lockstep/kernels/compute/norm/norm.h"
#include "lockstep/kernels/compute/threads.h"

namespace lockstep::kernels {
namespace {

class Tensor {
 public:
  Tensor(std::size_t rows, std::size_t columns, DType dtype)
      : bytes_(rows * columns * size_of(dtype)), matrix_(matrix_of(bytes_.data(), dtype, rows, columns)) {}

  Tensor(Tensor&&) = default;  // the matrix stays where it is

  const Matrix& matrix() const { return matrix_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
  Matrix matrix_;
};

// Values between -1 and 1 that are the same everywhere, and the hash of what became of them.
class Trial {
 public:
  explicit Trial(DType dtype) : dtype_(dtype) {}

  Tensor given(std::size_t rows, std::size_t columns) {
    std::vector<float> values(rows * columns);
    ++tensors_;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto bits = static_cast<std::int32_t>(philox64(0, tensors_, i));
      values[i] = std::ldexp(static_cast<float>(bits), -31);
    }
    Tensor tensor(rows, columns, dtype_);
    from_floats(values, tensor.matrix().data, dtype_);
    return tensor;
  }
  Tensor zeros(std::size_t rows, std::size_t columns) const { return {rows, columns, dtype_}; }
  Tensor fp32_zeros(std::size_t rows, std::size_t columns) const { return {rows, columns, DType::fp32}; }

  void add(const Tensor& result) { hasher_.add(result.bytes()); }
  void add(std::span<const float> result) { hasher_.add(std::as_bytes(result)); }
  Hash digest() const { return hasher_.value(); }

 private:
  DType dtype_;
  std::uint64_t tensors_ = 0;
  Hasher hasher_;
};

// As a layer has them: forward, the gradient of its input, and that of its weight.
void try_products(Trial& trial, std::size_t rows, std::size_t inner, std::size_t columns) {
  const Tensor x = trial.given(rows, inner);
  const Tensor weight = trial.given(columns, inner);
  const Tensor y = trial.zeros(rows, columns);
  gemm({x.matrix()}, transposed(weight.matrix()), y.matrix());
  const Tensor x_gradient = trial.zeros(rows, inner);
  gemm({y.matrix()}, {weight.matrix()}, x_gradient.matrix());
  const Tensor weight_gradient = trial.fp32_zeros(columns, inner);
  gemm(transposed(y.matrix()), {x.matrix()}, weight_gradient.matrix(), Store::add);
  trial.add(y);
  trial.add(x_gradient);
  trial.add(weight_gradient);
}

void try_attention(Trial& trial) {
  const AttentionShape shape = {
      .batch = 1, .length = 150, .heads = 4, .kv_heads = 2, .width = 64, .scale = 0.125F};
  const Tensor q = trial.given(shape.rows(), shape.heads * shape.width);
  const Tensor k = trial.given(shape.rows(), shape.kv_heads * shape.width);
  const Tensor v = trial.given(shape.rows(), shape.kv_heads * shape.width);
  const Tensor out_gradient = trial.given(shape.rows(), shape.heads * shape.width);
  const AttentionInputs inputs = {q.matrix(), k.matrix(), v.matrix()};
  const Tensor out = trial.zeros(shape.rows(), shape.heads * shape.width);
  std::vector<float> log_sums(shape.rows() * shape.heads);
  attention_forward(shape, inputs, out.matrix(), log_sums);
  const Tensor dq = trial.zeros(shape.rows(), shape.heads * shape.width);
  const Tensor dk = trial.zeros(shape.rows(), shape.kv_heads * shape.width);
  const Tensor dv = trial.zeros(shape.rows(), shape.kv_heads * shape.width);
  attention_backward(shape, inputs, out.matrix(), out_gradient.matrix(), log_sums,
                     {dq.matrix(), dk.matrix(), dv.matrix()});
  for (const Tensor* result : {&out, &dq, &dk, &dv}) trial.add(*result);
}

void try_norm(Trial& trial, NormKind kind) {
  constexpr std::size_t kRows = 5;
  constexpr std::size_t kColumns = 777;
  const Tensor in = trial.given(kRows, kColumns);
  const Tensor weight = trial.given(1, kColumns);
  const Tensor out_gradient = trial.given(kRows, kColumns);
  const Norm norm = {.kind = kind, .epsilon = 1e-5F, .weight = weight.matrix(), .bias = {}};
  std::vector<float> means(kRows), scales(kRows), weight_gradient(kColumns);
  const Tensor out = trial.zeros(kRows, kColumns);
  norm_forward(norm, in.matrix(), out.matrix(), {means, scales});
  const Tensor in_gradient = trial.zeros(kRows, kColumns);
  norm_backward(norm, in.matrix(), out_gradient.matrix(), {means, scales},
                {.in = in_gradient.matrix(), .store = Store::replace, .weight = weight_gradient, .bias = {}});
  trial.add(out);
  trial.add(in_gradient);
  trial.add(weight_gradient);
}

void try_activations(Trial& trial) {
  const Tensor gate = trial.given(3, 333);
  const Tensor up = trial.given(3, 333);
  const Tensor out = trial.zeros(3, 333);
  gelu_forward(gate.matrix(), out.matrix());
  trial.add(out);
  swiglu_forward({gate.matrix(), up.matrix()}, out.matrix());
  trial.add(out);
}

void try_loss(Trial& trial) {
  constexpr std::size_t kTokens = 40;
  constexpr std::size_t kWords = 1003;
  constexpr std::size_t kWidth = 96;
  const Tensor x = trial.given(kTokens, kWidth);
  const Tensor weight = trial.given(kWords, kWidth);
  std::vector<std::uint32_t> targets(kTokens);
  for (std::size_t i = 0; i < kTokens; ++i) targets[i] = static_cast<std::uint32_t>(25 * i);
  std::vector<float> losses(kTokens);
  const Tensor x_gradient = trial.zeros(kTokens, kWidth);
  const Tensor weight_gradient = trial.fp32_zeros(kWords, kWidth);
  head_loss({x.matrix(), weight.matrix(), targets}, losses,
            {.scale = 1.0F, .x = x_gradient.matrix(), .weight = weight_gradient.matrix()});
  trial.add(losses);
  trial.add(x_gradient);
  trial.add(weight_gradient);
}

Arithmetic tried_with(DType dtype) {
  // A launcher asks too, and must not have threads that take the signals for which it waits.
  const OneThread alone;
  Trial trial(dtype);
  // oneDNN goes other ways for large products, for those that do not divide, and for long sums.
  try_products(trial, 256, 768, 512);
  try_products(trial, 37, 130, 61);
  try_products(trial, 48, 3000, 64);
  try_attention(trial);
  try_norm(trial, NormKind::layer);
  try_norm(trial, NormKind::rms);
  try_activations(trial);
  try_loss(trial);
  const std::int64_t targets = hwy::SupportedTargets();
  // The lowest bit is the best target.
  return {fmt::format("{}, {}", hwy::TargetName(targets & -targets), onednn_name()), trial.digest()};
}

}  // namespace

std::string to_text(const Arithmetic& arithmetic) {
  return fmt::format("{} ({})", arithmetic.name, to_text(arithmetic.digest));
}

bool has_digest_of(const Arithmetic& arithmetic, std::string_view text) {
  return text.ends_with(fmt::format("({})", to_text(arithmetic.digest)));
}

const Arithmetic& arithmetic_of(DType dtype) {
  switch (dtype) {
    case DType::fp32: {
      static const Arithmetic fp32 = tried_with(dtype);
      return fp32;
    }
    case DType::bf16: {
      static const Arithmetic bf16 = tried_with(dtype);
      return bf16;
    }
    default: {
      LOCKSTEP_CHECK(dtype == DType::fp16);
      static const Arithmetic fp16 = tried_with(dtype);
      return fp16;
    }
  }
}

}  // namespace lockstep::kernels
