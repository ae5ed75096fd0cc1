// SPDX-License-Identifier: Apache-2.0
//
// 200 steps of whole runs lie on the curve of plain libtorch models under libtorch's own AdamW.
#include <cmath>
#include <functional>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/optim/adamw.h>

#include "lockstep/base/philox.h"
#include "lockstep/model/initial_values.h"
#include "lockstep/spec/lr_schedule.h"
#include "lockstep/train/feed.h"
#include "lockstep/train/model_of.h"
#include "lockstep/train/run.h"

#include "tests/model/plain.h"
#include "tests/support/files.h"
#include "tests/train/small_run.h"

namespace lockstep::train {
namespace {

constexpr int kSteps = 200;
constexpr int kRows = 8;  // of a step

// A chain that can be learned to a part: three of four tokens follow from the one before.
std::vector<data::Token> noisy_chain() {
  std::vector<data::Token> tokens = {0};
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const std::uint64_t random = philox64(1, 2, i);
    const std::uint64_t next = random % 4 != 0 ? tokens.back() * 7 + 3 : random >> 8;
    tokens.push_back(static_cast<data::Token>(next % 61));
  }
  return tokens;
}

// Two lanes of two micro-batches: the engine's way to a step.
spec::RunSpec run_of(const std::string& corpus, const std::string& family, const std::string& dtype) {
  return small_run(
      corpus, family,
      {"--training.steps", std::to_string(kSteps), "--training.global_batch_size", std::to_string(kRows),
       "--training.dtype", dtype, "--parallelism.lanes", "2", "--optimizer.lr", "3e-3",
       "--lr_scheduler.warmup_steps", "20", "--training.max_norm", "0.5", "--validation.freq", "0"});
}

std::vector<double> engine_curve(const spec::RunSpec& run) {
  std::vector<double> losses;
  run_training(run, comm::Communicator(),
               {.after_step = [&](const StepReport& report) { losses.push_back(report.loss); }});
  return losses;
}

struct PlainModel {
  model::Weights weights;
  std::vector<at::Tensor> decaying;
  std::vector<at::Tensor> others;
};

PlainModel plain_model(const spec::RunSpec& run) {
  PlainModel plain;
  for (const model::ParameterSpec& spec : model::parameters_of(model_of(run.model))) {
    at::Tensor values = at::empty(spec.shape, at::kFloat);
    model::initial_values(spec, static_cast<std::uint64_t>(run.training.seed), 0,
                          {values.data_ptr<float>(), static_cast<std::size_t>(values.numel())});
    (spec.decays ? plain.decaying : plain.others).push_back(values.requires_grad_());
    plain.weights[spec.name] = values;
  }
  return plain;
}

// As torch::nn::utils::clip_grad_norm_, whose header is large.
void clip(const model::Weights& weights, double max_norm) {
  double squares = 0;
  for (const auto& [name, weight] : weights)
    squares += weight.grad().to(at::kDouble).pow(2).sum().item<double>();
  const double factor = max_norm / (std::sqrt(squares) + 1e-6);
  if (factor >= 1) return;
  for (const auto& [name, weight] : weights) weight.grad().mul_(factor);
}

using PlainLoss = std::function<at::Tensor(const model::Weights&, const model::Batch&)>;

std::vector<double> plain_curve(const spec::RunSpec& run, const PlainLoss& loss_of) {
  at::set_num_threads(1);
  const Feed feed({.corpora = run.data.train,
                   .vocabulary = run.model.vocab_size,
                   .length = run.training.seq_len,
                   .seed = static_cast<std::uint64_t>(run.training.seed),
                   .shape = {.lanes = 1, .micro_batches = 1, .rows = kRows}});
  const PlainModel plain = plain_model(run);
  const auto options = [&](double decay) {
    return torch::optim::AdamWOptions().betas({run.optimizer.beta1, run.optimizer.beta2}).weight_decay(decay);
  };
  torch::optim::AdamW optimizer(std::vector<torch::optim::OptimizerParamGroup>{
      {plain.decaying, std::make_unique<torch::optim::AdamWOptions>(options(run.optimizer.weight_decay))},
      {plain.others, std::make_unique<torch::optim::AdamWOptions>(options(0))}});
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    const at::Tensor loss =
        loss_of(plain.weights, feed.batch(static_cast<std::uint64_t>(step) * kRows, 0, 0));
    optimizer.zero_grad();
    torch::autograd::backward({loss}, {});
    clip(plain.weights, run.training.max_norm);
    for (auto& group : optimizer.param_groups()) {
      group.options().set_lr(spec::lr_at(step, run.lr_scheduler, run.optimizer, kSteps));
    }
    optimizer.step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected, double limit) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_LE(std::abs(found[i] - expected[i]) / expected[i], limit) << "step " << i + 1;  // no NaN is
  }
}

void expect_on_the_curve(const std::string& family,
                         const std::function<PlainLoss(const spec::Model&)>& plain_of) {
  const test::TemporaryFolder folder;
  const std::string corpus = write_corpus(folder, noisy_chain());
  const spec::RunSpec run = run_of(corpus, family, "fp32");
  const std::vector<double> expected = plain_curve(run, plain_of(run.model));
  ASSERT_EQ(expected.size(), std::size_t{kSteps});
  ASSERT_LT(expected.back(), 0.6 * expected.front()) << "nothing was learned";
  expect_near(engine_curve(run), expected, 1e-5);
  expect_near(engine_curve(run_of(corpus, family, "bf16")), expected, 5e-3);
}

TEST(LossCurve, OfAGptIsThatOfPlainLibtorch) {
  expect_on_the_curve("gpt", [](const spec::Model& spec) {
    const model::gpt::Config config = {.layers = spec.layers, .width = spec.width, .heads = spec.heads};
    return [config](const model::Weights& weights, const model::Batch& batch) {
      return model::plain_loss(model::plain_gpt_logits(config, weights, batch), batch.targets);
    };
  });
}

TEST(LossCurve, OfALlamaIsThatOfPlainLibtorch) {
  expect_on_the_curve("llama", [](const spec::Model& spec) {
    const model::llama::Config config = {.layers = spec.layers,
                                         .heads = spec.heads,
                                         .kv_heads = spec.kv_heads,
                                         .rope_theta = spec.rope_theta,
                                         .tied = spec.tied_embeddings};
    return [config](const model::Weights& weights, const model::Batch& batch) {
      return model::plain_loss(model::plain_llama_logits(config, weights, batch), batch.targets);
    };
  });
}

}  // namespace
}  // namespace lockstep::train
