// SPDX-License-Identifier: Apache-2.0
//
// `lockstep bench train` against PyTorch, on models small enough for a test.
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/bench_train_program.h"

namespace lockstep::testing {
namespace {

using nlohmann::json;

struct Case {
  const char* preset;
  const char* kv_heads;
  const char* dtype;
};

// The lines of one turn on two workers.
std::vector<json> turn_of(const Case& run) {
  return bench_train_lines(
      {"--preset",           run.preset,   "--dtype",           run.dtype, "--against",          "pytorch",
       "--model.layers",     "1",          "--model.width",     "32",      "--model.heads",      "4",
       "--model.kv_heads",   run.kv_heads, "--model.ffn_width", "64",      "--model.vocab_size", "64",
       "--training.threads", "1"});
}

TEST(BenchTrain, GivesBothSystemsAllFiguresAndTheirRatio) {
  for (const Case& run : {Case{"gpt2-124m", "4", "fp32"}, Case{"llama-tiny", "2", "bf16"}}) {
    const std::vector<json> lines = turn_of(run);
    ASSERT_EQ(lines.size(), 3U) << run.preset;
    EXPECT_EQ(lines[0]["system"], "lockstep");
    EXPECT_EQ(lines[1]["system"], "pytorch");
    for (const json& system : {lines[0], lines[1]}) {
      for (const char* figure :
           {"tokens_per_s", "gflops", "gemm_peak_gflops", "mfu", "step_ms", "peak_rss_mib"}) {
        ASSERT_TRUE(system.contains(figure)) << figure << " in " << system;
        EXPECT_GT(system[figure], 0.0) << figure << " in " << system;
      }
    }
    EXPECT_EQ(lines[2]["ratios"], "lockstep / pytorch");
    for (const char* figure : {"tokens_per_s", "peak_rss_mib"}) {
      const double ours = lines[0][figure];
      const double theirs = lines[1][figure];
      EXPECT_DOUBLE_EQ(lines[2][figure].get<double>(), ours / theirs) << figure;
    }
  }
}

}  // namespace
}  // namespace lockstep::testing
