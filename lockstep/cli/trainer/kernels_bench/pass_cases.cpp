// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>

#include "lockstep/cli/trainer/kernels_bench/cases.h"
#include "lockstep/cli/trainer/kernels_bench/operands.h"
#include "lockstep/kernels/compute/activation/activation.h"
#include "lockstep/kernels/compute/attention/attention.h"
#include "lockstep/kernels/compute/bias/bias.h"
#include "lockstep/kernels/compute/dropout/dropout.h"
#include "lockstep/kernels/compute/embedding/embedding.h"
#include "lockstep/kernels/compute/gemm/gemm.h"
#include "lockstep/kernels/compute/lanes/sum.h"
#include "lockstep/kernels/compute/loss/head_loss.h"
#include "lockstep/kernels/compute/loss/lane_head.h"
#include "lockstep/kernels/compute/norm/norm.h"
#include "lockstep/kernels/compute/rotary/rotary.h"

namespace lockstep::cli {
namespace {

using namespace kernels;  // NOLINT(google-build-using-namespace): every other word here is one of theirs

constexpr std::size_t kHeads = 12;
constexpr std::size_t kHeadWidth = kWidth / kHeads;
constexpr std::size_t kVocabulary = 50257;
constexpr std::size_t kLanes = 4;  // of layers that are divided

constexpr double kGemmFlops = 2.0 * kTokens * kWidth * kFfn;

KernelWork gemm_forward(DType dtype) {
  return {.flops = kGemmFlops,
          .call = [in = values(dtype, kTokens, kWidth), weight = values(dtype, kFfn, kWidth),
                   out = values(dtype, kTokens, kFfn)] {
            gemm({in->matrix()}, transposed(weight->matrix()), out->matrix());
          }};
}

KernelWork gemm_and_bias(DType dtype) {
  return {.flops = kGemmFlops,
          .call = [in = values(dtype, kTokens, kWidth), weight = values(dtype, kFfn, kWidth),
                   bias = values(dtype, 1, kFfn), out = values(dtype, kTokens, kFfn)] {
            gemm_with_bias({in->matrix()}, transposed(weight->matrix()), bias->matrix(), out->matrix());
          }};
}

KernelWork gemm_input_gradient(DType dtype) {
  return {.flops = kGemmFlops,
          .call = [in = values(dtype, kTokens, kWidth), weight = values(dtype, kFfn, kWidth),
                   out = values(dtype, kTokens, kFfn)] {
            gemm({out->matrix()}, {weight->matrix()}, in->matrix());
          }};
}

KernelWork gemm_weight_gradient(DType dtype) {
  return {.flops = kGemmFlops,
          .call = [in = values(dtype, kTokens, kWidth), out = values(dtype, kTokens, kFfn),
                   gradient = values(DType::fp32, kFfn, kWidth)] {
            gemm(transposed(out->matrix()), {in->matrix()}, gradient->matrix(), Store::add);
          }};
}

struct Attention {
  explicit Attention(DType dtype)
      : qkv(dtype, kTokens, 3 * kWidth), gradients(dtype, kTokens, 3 * kWidth), out(dtype, kTokens, kWidth) {
    forward();
  }
  static Matrix third(Values& of, std::size_t index) { return of.columns(index * kWidth, kWidth); }
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

KernelWork attention_forward(DType dtype) {
  return {.flops = 2 * kScoreFlops,
          .call = [attention = std::make_shared<Attention>(dtype)] { attention->forward(); }};
}

KernelWork attention_backward(DType dtype) {
  return {.flops = 5 * kScoreFlops,
          .call = [attention = std::make_shared<Attention>(dtype)] { attention->backward(); }};
}

struct NormOperands {
  NormOperands(DType dtype, NormKind kind)
      : in(dtype, kTokens, kWidth),
        out(dtype, kTokens, kWidth),
        din(dtype, kTokens, kWidth),
        weight(dtype, 1, kWidth),
        norm{.kind = kind, .weight = weight.matrix(), .bias = {}} {
    if (kind == NormKind::layer)
      norm.bias = norm.weight;
    else
      bias_gradient.clear();
    forward();
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

template <NormKind kKind>
KernelWork norm_forward(DType dtype) {
  auto norm = std::make_shared<NormOperands>(dtype, kKind);
  return {.bytes = 2 * norm->in.bytes(), .call = [norm] { norm->forward(); }};
}

template <NormKind kKind>
KernelWork norm_backward(DType dtype) {
  auto norm = std::make_shared<NormOperands>(dtype, kKind);
  return {.bytes = 3 * norm->in.bytes(), .call = [norm] { norm->backward(); }};
}

KernelWork gelu_forward(DType dtype) {
  auto in = values(dtype, kTokens, kFfn);
  return {.bytes = 2 * in->bytes(),
          .call = [in, out = values(dtype, kTokens, kFfn)] { gelu_forward(in->matrix(), out->matrix()); }};
}

KernelWork gelu_backward(DType dtype) {
  auto in = values(dtype, kTokens, kFfn);
  return {.bytes = 3 * in->bytes(),
          .call = [in, out = values(dtype, kTokens, kFfn), din = values(dtype, kTokens, kFfn)] {
            gelu_backward(in->matrix(), out->matrix(), din->matrix());
          }};
}

KernelWork swiglu_forward(DType dtype) {
  auto in = values(dtype, kTokens, 2 * kFfn);
  auto out = values(dtype, kTokens, kFfn);
  return {.bytes = in->bytes() + out->bytes(), .call = [in, out] {
            swiglu_forward({in->columns(0, kFfn), in->columns(kFfn, kFfn)}, out->matrix());
          }};
}

KernelWork swiglu_backward(DType dtype) {
  auto in = values(dtype, kTokens, 2 * kFfn);
  auto out = values(dtype, kTokens, kFfn);
  return {.bytes = 2 * in->bytes() + out->bytes(), .call = [in, out, din = values(dtype, kTokens, 2 * kFfn)] {
            swiglu_backward({in->columns(0, kFfn), in->columns(kFfn, kFfn)}, out->matrix(),
                            {din->columns(0, kFfn), din->columns(kFfn, kFfn)});
          }};
}

KernelWork rotary(DType dtype) {
  auto heads = values(dtype, kTokens, kWidth);
  return {.bytes = 2 * heads->bytes(),
          .call = [heads, table = std::make_shared<RotaryTable>(kTokens, kHeadWidth, 10000.0)] {
            rotate(*table, {.length = kTokens}, heads->matrix(), Rotation::forward);
          }};
}

std::vector<std::uint32_t> some_ids() {
  std::vector<std::uint32_t> ids(kTokens);
  for (std::size_t i = 0; i < kTokens; ++i) ids[i] = static_cast<std::uint32_t>(i * i * 31 % kVocabulary);
  return ids;
}

KernelWork embedding_forward(DType dtype) {
  auto out = values(dtype, kTokens, kWidth);
  return {.bytes = 3 * out->bytes(),
          .call = [out, table = values(dtype, kVocabulary, kWidth), places = values(dtype, kTokens, kWidth),
                   ids = some_ids()] {
            embedding_forward(table->matrix(), ids, {places->matrix(), {.length = kTokens}}, out->matrix());
          }};
}

KernelWork embedding_backward(DType dtype) {
  auto out = values(dtype, kTokens, kWidth);
  auto places = values(DType::fp32, kTokens, kWidth);
  return {.bytes = out->bytes() + 4 * places->bytes(),
          .call = [out, places, table = values(DType::fp32, kVocabulary, kWidth), ids = some_ids()] {
            embedding_backward(ids, out->matrix(), table->matrix(), {places->matrix(), {.length = kTokens}});
          }};
}

// The table of the second lane, which about one id in kLanes belongs to.
constexpr std::size_t kLaneRows = (kVocabulary + kLanes - 1) / kLanes;
constexpr TablePart kPart = {.first = kLaneRows, .vocabulary = kVocabulary};

KernelWork embedding_part(DType dtype) {
  auto out = values(dtype, kTokens, kWidth);
  return {.bytes = 2 * out->bytes() / kLanes,
          .call = [out, table = values(dtype, kLaneRows, kWidth), ids = some_ids()] {
            embedding_part_forward(table->matrix(), kPart, ids, out->matrix());
          }};
}

KernelWork embedding_part_gradient(DType dtype) {
  auto out = values(dtype, kTokens, kWidth);
  return {.bytes = (out->bytes() + 2 * sizeof(float) * kTokens * kWidth) / kLanes,
          .call = [out, table = values(DType::fp32, kLaneRows, kWidth), ids = some_ids()] {
            embedding_part_backward(ids, out->matrix(), table->matrix(), kPart);
          }};
}

constexpr double kHeadFlops = 6.0 * kTokens * kWidth * kVocabulary;

KernelWork head_and_loss(DType dtype) {
  return {.flops = kHeadFlops,
          .call = [x = values(dtype, kTokens, kWidth), weight = values(dtype, kVocabulary, kWidth),
                   dx = values(dtype, kTokens, kWidth), dweight = values(DType::fp32, kVocabulary, kWidth),
                   targets = some_ids(), losses = std::make_shared<std::vector<float>>(kTokens)] {
            head_loss({x->matrix(), weight->matrix(), targets}, *losses,
                      {.scale = 1.0F / kTokens, .x = dx->matrix(), .weight = dweight->matrix()});
          }};
}

// All lanes of a divided head.
struct LaneHead {
  explicit LaneHead(DType dtype)
      : x(dtype, kTokens, kWidth),
        dx(dtype, kTokens, kWidth),
        weight(dtype, kVocabulary, kWidth),
        dweight(DType::fp32, kVocabulary, kWidth) {
    for (std::size_t first = 0; first < kVocabulary; first += kLaneRows) {
      const std::size_t rows = std::min(kLaneRows, kVocabulary - first);
      lanes.push_back({weight.matrix().part(first, rows, 0, kWidth), static_cast<std::uint32_t>(first),
                       dweight.matrix().part(first, rows, 0, kWidth)});
    }
  }
  void run() {
    lane_head_loss({.x = x.matrix(),
                    .targets = targets,
                    .vocabulary = kVocabulary,
                    .lanes = kLanes,
                    .here = lanes,
                    .exchange = [](std::span<float>) {}},
                   losses, 1.0F / kTokens, dx.matrix());
  }

  Values x, dx, weight, dweight;
  std::vector<HeadLane> lanes;
  std::vector<std::uint32_t> targets = some_ids();
  std::vector<float> losses = std::vector<float>(kTokens);
};

KernelWork lane_head_and_loss(DType dtype) {
  return {.flops = kHeadFlops, .call = [head = std::make_shared<LaneHead>(dtype)] { head->run(); }};
}

KernelWork sum_of_lanes(DType dtype) {
  auto lanes = values(dtype, kLanes, kTokens * kWidth);
  auto sum = values(dtype, 1, kTokens * kWidth);
  return {.bytes = lanes->bytes() + sum->bytes(), .call = [dtype, lanes, sum] {
            std::array<const std::byte*, kLanes> pointers = {};
            for (std::size_t lane = 0; lane < kLanes; ++lane) pointers[lane] = lanes->matrix().row(lane);
            sum_lanes(dtype, pointers, sum->matrix().row(0), kTokens * kWidth);
          }};
}

KernelWork bias_forward(DType dtype) {
  auto rows = values(dtype, kTokens, kFfn);
  return {.bytes = 2 * rows->bytes(), .call = [rows, bias = values(dtype, 1, kFfn)] {
            add_bias(rows->matrix(), bias->matrix(), rows->matrix());
          }};
}

KernelWork bias_gradient(DType dtype) {
  auto rows = values(dtype, kTokens, kFfn);
  return {.bytes = rows->bytes(), .call = [rows, gradient = values(DType::fp32, 1, kFfn)] {
            bias_backward(rows->matrix(), gradient->floats());
          }};
}

KernelWork residual(DType dtype) {
  auto a = values(dtype, kTokens, kWidth);
  return {.bytes = 3 * a->bytes(),
          .call = [a, b = values(dtype, kTokens, kWidth), out = values(dtype, kTokens, kWidth)] {
            add_matrices(a->matrix(), b->matrix(), out->matrix());
          }};
}

KernelWork dropout(DType dtype) {
  auto in = values(dtype, kTokens, kWidth);
  return {.bytes = 2 * in->bytes(), .call = [in, out = values(dtype, kTokens, kWidth)] {
            dropout({.probability = 0.1F, .key = 1, .stream = 2}, in->matrix(), out->matrix());
          }};
}

}  // namespace

std::vector<KernelCase> pass_cases() {
  return {{"gemm", gemm_forward},
          {"gemm_with_bias", gemm_and_bias},
          {"gemm_input_gradient", gemm_input_gradient},
          {"gemm_weight_gradient", gemm_weight_gradient},
          {"attention", attention_forward},
          {"attention_gradient", attention_backward},
          {"head_and_loss", head_and_loss},
          {"lane_head_and_loss", lane_head_and_loss},
          {"sum_lanes", sum_of_lanes},
          {"layer_norm", norm_forward<NormKind::layer>},
          {"layer_norm_gradient", norm_backward<NormKind::layer>},
          {"rms_norm", norm_forward<NormKind::rms>},
          {"rms_norm_gradient", norm_backward<NormKind::rms>},
          {"gelu", gelu_forward},
          {"gelu_gradient", gelu_backward},
          {"swiglu", swiglu_forward},
          {"swiglu_gradient", swiglu_backward},
          {"rotary", rotary},
          {"embedding", embedding_forward},
          {"embedding_gradient", embedding_backward},
          {"embedding_part", embedding_part},
          {"embedding_part_gradient", embedding_part_gradient},
          {"bias", bias_forward},
          {"bias_gradient", bias_gradient},
          {"residual", residual},
          {"dropout", dropout}};
}

}  // namespace lockstep::cli
