// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/files.h"

namespace lockstep::testing {

// A folder with a corpus of bytes and a run file for a tiny model.
class TrainProgram : public ::testing::Test {
 protected:
  TrainProgram() {
    std::string text;
    for (int i = 0; i < 4000; ++i) text += "line " + std::to_string(i * i % 977) + " of the text\n";
    const std::string file = folder_.write("text.txt", text);
    const Finished prepared =
        run_program({"prepare", file, "--tokenizer", "bytes", "--output", folder_.path("corpus")});
    EXPECT_EQ(prepared.exit_code, 0) << prepared.error_output;
    run_ = folder_.write("run.toml", R"([model]
name = "llama"
layers = 2
width = 32
heads = 4
kv_heads = 2
ffn_width = 64
vocab_size = 512
[data]
train = [")" + folder_.path("corpus") + R"("]
validation = [")" + folder_.path("corpus") +
                                         R"("]
[training]
steps = 4
seq_len = 32
micro_batch_size = 2
global_batch_size = 16
[parallelism]
lanes = 4
[validation]
freq = 2
steps = 3
)");
  }

  Finished train(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"train", run_});
    return run_program(std::move(flags));
  }

  // That of a run which was trained from its begin to its end by the same workers.
  std::string trace_file_of(const std::string& run) const {
    return folder_.path(run) + "/trace/from_step_1.json";
  }
  nlohmann::json trace_of(const std::string& run) const {
    return nlohmann::json::parse(read_file(trace_file_of(run)));
  }

  // Of a run that goes on in the background.
  void wait_for_a_step(const std::string& run) {
    for (int i = 0; i < 600 && read_file(folder_.path(run) + "/metrics.jsonl").empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  // What every step of a run came to, without times and what the machine did.
  std::vector<nlohmann::json> steps_of(const std::string& run) {
    std::istringstream lines(read_file(folder_.path(run) + "/metrics.jsonl"));
    std::vector<nlohmann::json> steps;
    for (std::string line; std::getline(lines, line);) {
      nlohmann::json step = nlohmann::json::parse(line);
      for (const char* name : {"time", "tokens_per_s", "step_s", "mfu", "page_faults", "peak_memory_mib",
                               "predicted_memory_mib", "checkpoint/seconds", "checkpoint/stall_s"})
        step.erase(name);
      const auto is_measured = [](const std::string& name) {
        return name.starts_with("speed/") || name.starts_with("phase/");
      };
      for (auto key = step.begin(); key != step.end();) {
        key = is_measured(key.key()) ? step.erase(key) : std::next(key);
      }
      steps.push_back(std::move(step));
    }
    return steps;
  }

  // Of the newest checkpoint.
  std::string hash_of(const std::string& run) const {
    const Finished finished = run_program({"checkpoint", "hash", folder_.path(run)});
    EXPECT_EQ(finished.exit_code, 0) << finished.error_output;
    return finished.output.substr(0, 32);
  }

  // Names the first step that is not the same.
  void expect_same_steps(const std::string& run, const std::string& expected) {
    const std::vector<nlohmann::json> steps = steps_of(run);
    const std::vector<nlohmann::json> others = steps_of(expected);
    EXPECT_EQ(steps.size(), others.size()) << run;
    const auto [step, other] = std::ranges::mismatch(steps, others);
    if (step == steps.end() || other == others.end()) return;
    ADD_FAILURE() << run << " has " << *step << ", but " << expected << " has " << *other;
  }

  TemporaryFolder folder_;
  std::string run_;
};

}  // namespace lockstep::testing
