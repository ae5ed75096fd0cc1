// SPDX-License-Identifier: Apache-2.0
//
// Dropout in whole runs: what it must not depend on, and where it must not be.
#include <gtest/gtest.h>

#include "lockstep/train/run.h"

#include "tests/support/files.h"
#include "tests/train/small_run.h"

namespace lockstep::train {
namespace {

class Dropout : public ::testing::TestWithParam<const char*> {
 protected:
  std::vector<StepReport> reports_of(const std::vector<std::string>& flags) const {
    std::vector<StepReport> reports;
    run_training(small_run(corpus_, GetParam(), flags), comm::Communicator(),
                 {.after_step = [&](const StepReport& report) { reports.push_back(report); }});
    return reports;
  }

  test::TemporaryFolder folder_;
  std::string corpus_ = small_corpus(folder_);
};

// The samples of a step are the same; only the order of the sums differs.
TEST_P(Dropout, MicroBatchesOfAnySizeHaveTheSameMasks) {
  const auto with_rows = [&](const char* rows) {
    return reports_of(
        {"--model.dropout", "0.5", "--training.micro_batch_size", rows, "--training.global_batch_size", "8"});
  };
  const std::vector<StepReport> expected = with_rows("8");
  const double without = reports_of({"--training.global_batch_size", "8"}).front().loss;
  EXPECT_GT(std::abs(expected.front().loss - without), 1e-3);
  for (const char* rows : {"1", "2", "4"}) {
    const std::vector<StepReport> found = with_rows(rows);
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i].loss, expected[i].loss, 1e-5) << rows << " rows, step " << i;
      EXPECT_NEAR(found[i].gradient_norm, expected[i].gradient_norm, 1e-4) << rows << " rows, step " << i;
    }
  }
}

TEST_P(Dropout, ValidationHasNone) {
  const auto with = [&](const char* dropout) {
    return reports_of(
        {"--model.dropout", dropout, "--optimizer.lr", "1e-30", "--optimizer.weight_decay", "0"});
  };
  const std::vector<StepReport> some = with("0.5");
  const std::vector<StepReport> none = with("0");
  EXPECT_EQ(some.front().validation_loss, none.front().validation_loss);
  EXPECT_NE(some.front().loss, none.front().loss);
}

// A sample that comes again in a later step loses other elements.
TEST_P(Dropout, EveryStepHasOtherMasks) {
  std::vector<double> losses;
  for (const StepReport& report :
       reports_of({"--model.dropout", "0.5", "--optimizer.lr", "1e-30", "--optimizer.weight_decay", "0",
                   "--training.seq_len", "1999", "--training.micro_batch_size", "1",
                   "--training.global_batch_size", "1"})) {
    losses.push_back(report.loss);
  }
  EXPECT_NE(losses[0], losses[1]);
  EXPECT_NE(losses[1], losses[2]);
}

INSTANTIATE_TEST_SUITE_P(Families, Dropout, ::testing::Values("gpt", "llama"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace lockstep::train
