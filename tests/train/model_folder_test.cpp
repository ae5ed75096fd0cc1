// SPDX-License-Identifier: Apache-2.0
//
// What a run leaves is what it had: the same loss, bit for bit, whoever loads it.
#include "lockstep/train/model_folder.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/train/evaluation.h"
#include "lockstep/train/model_of.h"
#include "lockstep/train/run.h"
#include "lockstep/train/validation.h"

#include "tests/support/error_of.h"
#include "tests/support/files.h"
#include "tests/train/small_run.h"

namespace lockstep::train {
namespace {

using test::error_of;
using test::TemporaryFolder;
using ::testing::HasSubstr;

class TrainedFolder : public ::testing::TestWithParam<const char*> {
 protected:
  spec::RunSpec run_of(const std::vector<std::string>& flags) const {
    return small_run(corpus_, GetParam(), flags);
  }

  // Trains, writes the folder, and returns the last validation loss.
  double train_and_save(const spec::RunSpec& run) const {
    double loss = 0;
    run_training(
        run, comm::Communicator(),
        {.after_step = [&](const StepReport& report) { loss = *report.validation_loss; },
         .trained = [&](const model::FlatLayout& whole,
                        const at::Tensor& values) { save_model(path_, run.model, whole, values, {}); }});
    return loss;
  }

  TemporaryFolder folder_;
  std::string corpus_ = small_corpus(folder_);
  std::string path_ = folder_.path("model");
};

TEST_P(TrainedFolder, HasTheLossOfTheRunBitForBit) {
  for (const char* name : {"fp32", "bf16"}) {
    const spec::RunSpec run = run_of({"--training.dtype", name});
    const double expected = train_and_save(run);
    const LoadedModel loaded(path_);
    EXPECT_EQ(loaded.spec(), run.model);
    const Feed feed(validation_feed(run));
    double sum = 0;
    for (int i = 0; i < run.validation.steps; ++i) {
      sum += loss_sum(loaded.model(), loaded.parameters(), feed.batch(0, 0, i));
    }
    const std::int64_t tokens = run.validation.steps * run.training.micro_batch_size * run.training.seq_len;
    EXPECT_EQ(sum / static_cast<double>(tokens), expected) << name;
  }
}

TEST_P(TrainedFolder, ARunCanBeginWithIt) {
  const spec::RunSpec run = run_of({});
  const double expected = train_and_save(run);
  std::optional<double> first;
  // Too slow to change anything.
  run_training(run_of({"--checkpoint.initial_load_path", path_, "--optimizer.lr", "1e-30",
                       "--optimizer.weight_decay", "0"}),
               comm::Communicator(), {.after_step = [&](const StepReport& report) {
                 if (!first) first = report.validation_loss;
               }});
  EXPECT_EQ(first, expected);
}

TEST_P(TrainedFolder, ARunOfAnotherSizeIsToldTheKey) {
  train_and_save(run_of({}));
  const auto refusal = [&](const std::string& key, const std::string& value) {
    const spec::RunSpec run = run_of({"--checkpoint.initial_load_path", path_, key, value});
    return error_of<UsageError>([&] { run_training(run, comm::Communicator(), {}); });
  };
  EXPECT_THAT(refusal("--model.vocab_size", "62"),
              HasSubstr("config.json says vocab_size = 61, but [model] of the run says vocab_size = 62"));
  EXPECT_THAT(refusal("--model.layers", "3"), HasSubstr("says layers = 2"));
  EXPECT_THAT(refusal("--model.layers", "1"), HasSubstr("says layers = 2"));
}

TEST_P(TrainedFolder, EvaluationTakesTheWholeCorpusOnce) {
  train_and_save(run_of({}));
  const LoadedModel loaded(path_);
  EvaluationOptions options = {.corpus = corpus_, .vocabulary = 61, .length = 16};
  const EvaluationResult whole = evaluate(loaded.model(), loaded.parameters(), options);
  EXPECT_EQ(whole.tokens, 1999 / 16 * 16);
  options.rows = 3;
  EXPECT_NEAR(evaluate(loaded.model(), loaded.parameters(), options).loss, whole.loss, 1e-6);
  options.max_sequences = 5;
  EXPECT_EQ(evaluate(loaded.model(), loaded.parameters(), options).tokens, 80);
  options.length = 2000;
  EXPECT_THROW(evaluate(loaded.model(), loaded.parameters(), options), UsageError);
}

// The tables of so many places are more than any host has; the model itself is small.
TEST(LoadedModelOf, ManyPlacesNeedsMemoryForThem) {
  const TemporaryFolder folder;
  const std::string path = folder.path("model");
  spec::Model spec = {.layers = 1,
                      .width = 2,
                      .heads = 1,
                      .kv_heads = 1,
                      .head_width = 16384,
                      .ffn_width = 2,
                      .vocab_size = 4,
                      .max_seq_len = 8};
  const model::Model model = model_of(spec);
  const model::FlatLayout layout(model);
  spec.max_seq_len = 1 << 24;
  save_model(path, spec, layout, at::zeros({layout.elements()}), {});
  EXPECT_THAT(
      error_of<UsageError>([&] { LoadedModel{path}; }),
      HasSubstr("config.json: the model and the tables of its 16777216 places need 1024.00 GiB of memory"));
}

INSTANTIATE_TEST_SUITE_P(Families, TrainedFolder, ::testing::Values("gpt", "llama"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace lockstep::train
