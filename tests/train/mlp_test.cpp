// SPDX-License-Identifier: Apache-2.0
//
// Runs on dense samples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/philox.h"
#include "lockstep/kernels/compute/threads.h"
#include "lockstep/train/feed.h"
#include "lockstep/train/model_folder.h"
#include "lockstep/train/run.h"

#include "tests/data/npy.h"
#include "tests/support/error_of.h"
#include "tests/support/files.h"
#include "tests/train/small_run.h"

namespace lockstep::train {
namespace {

using test::error_of;
using ::testing::HasSubstr;

constexpr int kInputs = 16;

// The class is the largest of the first three inputs.
std::vector<std::vector<float>> some_rows() {
  std::vector<std::vector<float>> rows;
  for (std::uint64_t i = 0; i < 200; ++i) {
    std::vector<float> row;
    for (std::uint64_t j = 0; j < kInputs; ++j) {
      row.push_back(static_cast<float>(philox64(1, i, j) >> 40) * 0x1p-23F - 1.0F);
    }
    row.push_back(static_cast<float>(std::max_element(row.begin(), row.begin() + 3) - row.begin()));
    rows.push_back(row);
  }
  return rows;
}

class Mlp : public ::testing::Test {
 protected:
  Mlp() { kernels::set_threads(1); }

  spec::RunSpec run_of(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {"--model.vocab_size", "3", "--training.global_batch_size", "16"});
    return small_run(file_, "mlp", flags);
  }
  std::vector<StepReport> reports_of(const std::vector<std::string>& flags) const {
    std::vector<StepReport> reports;
    run_training(run_of(flags), comm::Communicator(),
                 {.after_step = [&](const StepReport& report) { reports.push_back(report); }});
    return reports;
  }

  test::TemporaryFolder folder_;
  std::string file_ = folder_.write("x.npy", data::testing::npy(some_rows()));
};

TEST_F(Mlp, Learns) {
  for (const char* dtype : {"fp32", "bf16"}) {
    const std::vector<StepReport> reports =
        reports_of({"--training.steps", "60", "--optimizer.lr", "1e-2", "--training.dtype", dtype,
                    "--validation.freq", "60"});
    EXPECT_NEAR(reports.front().loss, std::log(3.0), 0.2);
    EXPECT_EQ(reports.front().tokens, 16);
    EXPECT_LT(*reports.back().validation_loss, 0.5) << dtype;
  }
}

TEST_F(Mlp, EveryShardingGivesOtherStepsAndFeaturesAreDivided) {
  const double by_sample = reports_of({"--parallelism.lanes", "4"}).front().loss;
  EXPECT_NE(reports_of({"--parallelism.lanes", "4", "--data.sharding", "batch"}).front().loss, by_sample);
  EXPECT_NE(reports_of({"--parallelism.lanes", "4", "--data.sharding", "feature"}).front().loss, by_sample);

  const Feed feed({.corpora = {{file_}},
                   .sharding = spec::Sharding::feature,
                   .dense = true,
                   .vocabulary = 3,
                   .length = kInputs,
                   .shape = {.lanes = 4, .micro_batches = 1, .rows = 2}});
  at::Tensor sum = feed.batch(0, 0, 0).features.clone();
  for (int lane = 1; lane < 4; ++lane) {
    const model::Batch batch = feed.batch(0, lane, 0);
    EXPECT_EQ(batch.features.ne(0).sum().item<std::int64_t>(), 2 * kInputs / 4);
    sum.add_(batch.features);
  }
  const Feed whole({.corpora = {{file_}},
                    .dense = true,
                    .vocabulary = 3,
                    .length = kInputs,
                    .shape = {.lanes = 1, .micro_batches = 1, .rows = 2}});
  EXPECT_TRUE(sum.equal(whole.batch(0, 0, 0).features)) << "lanes together see the samples";
}

TEST_F(Mlp, ARunCanBeginWithTheFolderOfAnother) {
  const spec::RunSpec run = run_of({});
  const std::string path = folder_.path("model");
  double expected = 0;
  run_training(
      run, comm::Communicator(),
      {.after_step = [&](const StepReport& report) { expected = *report.validation_loss; },
       .trained = [&](const model::FlatLayout& whole,
                      const at::Tensor& values) { save_model(path, run.model, whole, values, {}); }});
  EXPECT_EQ(reports_of({"--checkpoint.initial_load_path", path, "--optimizer.lr", "1e-30",
                        "--optimizer.weight_decay", "0"})
                .front()
                .validation_loss,
            expected);
  EXPECT_THAT(error_of<UsageError>([&] { LoadedModel loaded(path); }), HasSubstr("holds an mlp"));
}

TEST_F(Mlp, WhatMakesNoSenseIsRefusedWithASentence) {
  const auto refusal = [&](const std::vector<std::string>& flags) {
    return error_of<UsageError>([&] { reports_of(flags); });
  };
  EXPECT_THAT(refusal({"--training.seq_len", "17"}),
              HasSubstr("training.seq_len asks for 17 inputs; set it to 16"));
  EXPECT_THAT(refusal({"--data.sharding", "feature", "--parallelism.lanes", "32",
                       "--training.global_batch_size", "64"}),
              HasSubstr("16 features cannot be cut into 32 lanes"));
  EXPECT_THAT(refusal({"--data.tokenizer", "t.json"}),
              HasSubstr("data.tokenizer = \"t.json\" has no effect"));
  EXPECT_THAT(refusal({"--model.name", "llama", "--model.heads", "4", "--data.sharding", "feature"}),
              HasSubstr("only model.name = \"mlp\" reads"));
}

}  // namespace
}  // namespace lockstep::train
