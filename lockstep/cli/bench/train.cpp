// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/train.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/cpu.h"
#include "lockstep/base/error.h"
#include "lockstep/base/output_file.h"
#include "lockstep/cli/bench/torch_script.h"
#include "lockstep/cli/bench/train_options.h"
#include "lockstep/cli/bench/train_report.h"
#include "lockstep/cli/bench/training_run.h"
#include "lockstep/cli/errors.h"
#include "lockstep/cli/output.h"
#include "lockstep/cli/temporary_folder.h"
#include "lockstep/cli/workers.h"
#include "lockstep/spec/choices.h"
#include "lockstep/spec/model_size.h"
#include "lockstep/spec/workload.h"
#include "lockstep/spec/write.h"

namespace lockstep::cli {
namespace {

using Json = nlohmann::json;

constexpr const char* kPython = "/usr/bin/python3";

double median_after_the_first(std::vector<double> steps) {
  LOCKSTEP_CHECK(steps.size() >= 2, "a turn has a step after the first");
  return spread_of(std::span(steps).subspan(1)).median;
}

class TrainBench {
 public:
  explicit TrainBench(const TrainBenchOptions& options)
      : options_(options),
        workload_(spec::workload_of(options.run, options.workers)),
        work_{static_cast<double>(workload_.tokens_per_step),
              spec::flops_per_token(options.run.model, options.run.training.seq_len)} {
    spec::RunSpec& run = options_.run;
    run = spec::with_workload(run, workload_);
    // One at the end is not part of what is measured.
    run.checkpoint.enabled = run.checkpoint.interval != 0 || run.checkpoint.interval_seconds > 0;
    run.data.train = {{.path = folder_.file("tokens")}};
    write_random_corpus(folder_.file("tokens"), run, run.training.steps * workload_.tokens_per_step);
    write_atomically(folder_.file("run.toml"), spec::to_toml(run));
    write_atomically(folder_.file("torch_gpt.py"), kTorchScript);
  }

  std::string measure() {
    std::vector<TrainMeasurement> systems = {{"lockstep", {}}};
    for (const std::string& opponent : options_.against) systems.push_back({opponent, {}});
    for (int turn = 0; turn < options_.turns; ++turn) {
      for (TrainMeasurement& system : systems) system.turns.push_back(turn_of(system.system));
    }
    const auto figures = figures_of(systems, work_);
    return options_.json ? train_json(figures) : train_table(figures);
  }

 private:
  TrainTurn turn_of(const std::string& system) {
    const std::string output = folder_.file(fmt::format("turn{}", turns_++));
    if (system == "pytorch") return pytorch_turn(output);
    if (system == "inexact") return our_turn(output, options_.workers, {"--comm.exact", "false"});
    if (system == "unshared") return our_turn(output, options_.workers, {"--parallelism.zero_stage", "0"});
    if (system == "1f1b") return our_turn(output, options_.workers, {"--parallelism.schedule", "1f1b"});
    if (system == "undivided") {
      return our_turn(
          output, options_.workers,
          undivided_layers(options_.workers / static_cast<int>(options_.run.parallelism.pipeline)));
    }
    if (system == "data-parallel") {
      return our_turn(output, options_.workers, as_data_parallel(options_.workers));
    }
    if (system == "two-workers") return our_turn(output, 2, as_data_parallel(2));
    if (system == "one-process") {
      return our_turn(output, 1, {"--parallelism.pipeline", "1", "--parallelism.tensor", "1"});
    }
    return our_turn(output, options_.workers, {});
  }

  // Of the same global batch, with so many data-parallel workers.
  std::vector<std::string> undivided_layers(int data_parallel) const {
    const auto least = std::bit_ceil(static_cast<std::uint64_t>(data_parallel));
    const auto lanes = std::max(least, static_cast<std::uint64_t>(workload_.lanes));
    return {"--parallelism.tensor",
            "1",
            "--parallelism.tensor_lanes",
            "1",
            "--parallelism.sequence_parallel",
            "false",
            "--parallelism.lanes",
            std::to_string(lanes)};
  }

  std::vector<std::string> as_data_parallel(int workers) const {
    std::vector<std::string> flags = undivided_layers(workers);
    flags.insert(flags.end(), {"--parallelism.pipeline", "1"});
    return flags;
  }

  TrainTurn our_turn(const std::string& output, int workers, const std::vector<std::string>& flags) const {
    std::vector<std::string> command = {std::filesystem::read_symlink("/proc/self/exe").string(), "train",
                                        folder_.file("run.toml"), "--job.dump_folder", output};
    command.insert(command.end(), flags.begin(), flags.end());
    run_workers(std::move(command), {workers});
    std::ifstream in(output + "/metrics.jsonl");
    std::vector<double> steps;
    TrainTurn turn;
    for (std::string line; std::getline(in, line);) {
      const Json record = Json::parse(line);
      steps.push_back(record.at("step_s"));
      turn.peak_rss_mib = record.at("peak_memory_mib");
      turn.predicted_rss_mib = record.at("predicted_memory_mib");
      const double gflops = record.at("tokens_per_s").get<double>() * work_.flops_per_token / 1e9;
      turn.gemm_peak_gflops = gflops / record.at("mfu").get<double>();
    }
    turn.step_s = median_after_the_first(steps);
    return turn;
  }

  TrainTurn pytorch_turn(const std::string& output) const {
    const std::int64_t given = options_.run.training.threads;
    const std::int64_t threads = given > 0 ? given : std::max(1, usable_cores() / options_.workers);
    const std::string count = std::to_string(threads);
    try {
      run_workers(pytorch_command(output, count), {options_.workers},
                  {{"OMP_NUM_THREADS", count}, {"OPENBLAS_NUM_THREADS", count}});
    } catch (const WorkerFailed&) {
      throw UsageError(
          "PyTorch did not train (it says why above): --against pytorch needs python3 with torch");
    }
    const Json report = Json::parse(std::ifstream(output));
    return {.step_s = median_after_the_first(report.at("step_s")),
            .peak_rss_mib = report.at("peak_rss_mib"),
            .gemm_peak_gflops = 0,
            .predicted_rss_mib = 0};
  }

  std::vector<std::string> pytorch_command(const std::string& output, const std::string& threads) const {
    const spec::Model& model = options_.run.model;
    const spec::Training& training = options_.run.training;
    const auto name = [](auto value) {
      return std::string(spec::names_of(value).at(static_cast<std::size_t>(value)));
    };
    std::vector<std::string> command = {kPython, folder_.file("torch_gpt.py")};
    const auto add = [&](const char* flag, const std::string& value) {
      command.insert(command.end(), {flag, value});
    };
    add("--family", name(model.name));
    add("--dtype", name(training.dtype));
    add("--layers", std::to_string(model.layers));
    add("--heads", std::to_string(model.heads));
    add("--kv_heads", std::to_string(model.kv_heads));
    add("--width", std::to_string(model.width));
    add("--ffn_width", std::to_string(model.ffn_width));
    add("--positions", std::to_string(model.max_seq_len));
    add("--vocabulary", std::to_string(model.vocab_size));
    add("--theta", std::to_string(model.rope_theta));
    add("--tokens", std::to_string(training.seq_len));
    add("--batch", std::to_string(training.micro_batch_size));
    add("--steps", std::to_string(training.steps));
    add("--threads", threads);
    add("--meet", output + ".meet");
    add("--report", output);
    if (!model.tied_embeddings) command.emplace_back("--untied");
    return command;
  }

  TrainBenchOptions options_;
  spec::Workload workload_;
  TrainWork work_;
  TemporaryFolder folder_;
  int turns_ = 0;
};

}  // namespace

int run_train_bench(const std::vector<std::string>& arguments, std::ostream& out) {
  std::string help;
  const auto options = parse_train_bench_options(arguments, help);
  print(out, options ? TrainBench(*options).measure() : help);
  return 0;
}

}  // namespace lockstep::cli
