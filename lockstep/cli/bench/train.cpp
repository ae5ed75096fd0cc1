// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/train.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/output_file.h"
#include "lockstep/cli/bench/torch_command.h"
#include "lockstep/cli/bench/torch_script.h"
#include "lockstep/cli/bench/train_options.h"
#include "lockstep/cli/bench/train_report.h"
#include "lockstep/cli/bench/training_run.h"
#include "lockstep/cli/errors.h"
#include "lockstep/cli/logged_program.h"
#include "lockstep/cli/output.h"
#include "lockstep/cli/temporary_folder.h"
#include "lockstep/cli/workers.h"
#include "lockstep/spec/model_size.h"
#include "lockstep/spec/workload.h"
#include "lockstep/spec/write.h"

namespace lockstep::cli {
namespace {

using Json = nlohmann::json;

double median_after_the_first(std::vector<double> steps) {
  LOCKSTEP_CHECK(steps.size() >= 2, "a turn has a step after the first");
  return spread_of(std::span(steps).subspan(1)).median;
}

std::vector<std::string> without_pipeline(std::vector<std::string> flags) {
  for (std::string& flag : spec::flags_without_pipeline()) flags.push_back(std::move(flag));
  return flags;
}

class TrainBench {
 public:
  explicit TrainBench(const TrainBenchOptions& options)
      : options_(options),
        workload_(spec::workload_of(options.run, options.workers)),
        work_{static_cast<double>(workload_.tokens_per_step),
              spec::flops_per_token(options.run.model, options.run.training.seq_len)} {
    spec::RunSpec& run = options_.run;
    run = spec::settled(run, options.workers);
    // One at the end is not part of what is measured.
    if (run.checkpoint.interval == 0 && run.checkpoint.interval_seconds == 0) {
      run.checkpoint = {.enabled = false, .initial_load_path = run.checkpoint.initial_load_path};
    }
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
    if (system == "elastic") return elastic_turn(output);
    if (system == "inexact") return our_turn(output, options_.workers, {"--comm.exact", "false"});
    if (system == "unshared") {
      return our_turn(output, options_.workers,
                      {"--parallelism.zero_stage", "0", "--parallelism.zero_scope", "world"});
    }
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
      return our_turn(output, 1, without_pipeline({"--parallelism.tensor", "1"}));
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
    return without_pipeline(undivided_layers(workers));
  }

  TrainTurn our_turn(const std::string& output, int workers, const std::vector<std::string>& flags) const {
    std::vector<std::string> command = {std::filesystem::read_symlink("/proc/self/exe").string(), "train",
                                        folder_.file("run.toml"), "--job.dump_folder", output};
    command.insert(command.end(), flags.begin(), flags.end());
    run_workers(std::move(command), {workers});
    return turn_in(output);
  }

  // What the run in this folder came to.
  TrainTurn turn_in(const std::string& output) const {
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

  // The same as users start it: under a supervisor, with votes before every update and a journal of what only
  // one worker holds.
  TrainTurn elastic_turn(const std::string& output) const {
    run_to_end({std::filesystem::read_symlink("/proc/self/exe").string(), "train", folder_.file("run.toml"),
                "--workers", std::to_string(options_.workers), "--job.dump_folder", output},
               output + ".log", "the elastic run");
    return turn_in(output);
  }

  TrainTurn pytorch_turn(const std::string& output) const {
    const std::int64_t threads = torch_threads(options_.run, options_.workers);
    std::vector<std::string> command = {
        kPython, folder_.file("torch_gpt.py"), "--meet", output + ".meet", "--report", output};
    const std::vector<std::string> flags = torch_flags(options_.run, threads);
    command.insert(command.end(), flags.begin(), flags.end());
    try {
      run_workers(std::move(command), {options_.workers}, torch_environment(threads));
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
