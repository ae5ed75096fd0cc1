// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/state.h"

#include <filesystem>
#include <fstream>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/world.h"
#include "lockstep/cli/arguments.h"
#include "lockstep/cli/bench/training_run.h"
#include "lockstep/cli/output.h"
#include "lockstep/cli/temporary_folder.h"
#include "lockstep/cli/workers.h"
#include "lockstep/plan/step_memory.h"
#include "lockstep/spec/load.h"
#include "lockstep/spec/model_size.h"
#include "lockstep/spec/setting.h"
#include "lockstep/spec/workload.h"
#include "lockstep/spec/write.h"

namespace lockstep::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMib = 1024.0 * 1024.0;
constexpr int kStages = 4;  // of ZeRO, with none

constexpr const char* kNotes =
    "Trains two steps on random tokens for each ZeRO stage. state is what a worker keeps from step to step: "
    "weights, gradients in fp32 and what the optimizer remembers; formula is what the stage is known for: W "
    "+ "
    "G + O, W + G + O/N, W + (G + O)/N and (W + G + O)/N bytes, where weights W and gradients G are in "
    "training.dtype, O is in fp32 what the optimizer works on, and N workers share (data-parallel ones; with "
    "parallelism.zero_scope = host those of a host). For P parameters in bf16 with AdamW that is 16 P, (4 + "
    "12/N) P, (2 + 14/N) P and 16 P / N. passing is what comes and goes in a step: activations, and at "
    "stages 2 and 3 the gradients and "
    "weights of a few blocks. predicted is the sum of the two, measured the peak of rank 0 above what its "
    "process had before there was a model.\n"
    "Every key of a run file is also a flag, as in --model.layers 4 (docs/configuration.md lists them).";

struct Options {
  std::string preset = "gpt2-124m";
  int workers = 2;
  int hosts = 1;
  std::string seq_len = "64";
  bool json = false;
};

struct Figures {
  int zero_stage = 0;
  double formula_mib = 0;
  double state_mib = 0;
  double passing_mib = 0;
  double measured_mib = 0;

  double predicted_mib() const { return state_mib + passing_mib; }
};

// Of a parameter.
double formula_bytes(const spec::RunSpec& run, double workers) {
  const auto weight = static_cast<double>(size_of(run.training.dtype));
  const double gradient = weight;
  const double master = run.training.dtype == DType::fp32 ? 0 : sizeof(float);
  const double moments = run.optimizer.name == spec::OptimizerKind::adamw ? 2 : 1;
  const double optimizer = master + moments * sizeof(float);
  const double bytes[kStages] = {weight + gradient + optimizer, weight + gradient + optimizer / workers,
                                 weight + (gradient + optimizer) / workers,
                                 (weight + gradient + optimizer) / workers};
  return bytes[run.parallelism.zero_stage];
}

spec::RunSpec run_of(const Options& options, const std::vector<std::string>& key_flags) {
  std::vector<std::string> flags = {"--model.preset",
                                    options.preset,
                                    "--training.dtype",
                                    "bf16",
                                    "--training.seq_len",
                                    options.seq_len,
                                    "--training.steps",
                                    "2",
                                    "--training.micro_batch_size",
                                    "1",
                                    "--metrics.enable_tensorboard",
                                    "false"};
  flags.insert(flags.end(), key_flags.begin(), key_flags.end());
  return spec::parse_run("", "lockstep bench memory", flags);
}

class MemoryBench {
 public:
  MemoryBench(const Options& options, const std::vector<std::string>& key_flags)
      : options_(options), run_(run_of(options, key_flags)) {
    for (int rank = 0; rank < options.workers; ++rank) {
      host_of_.push_back(rank * options.hosts / options.workers);
    }
    const spec::Workload workload = spec::workload_of(run_, options.workers);
    run_ = spec::settled(run_, options.workers);
    run_.checkpoint = {.enabled = false};
    run_.data.train = {{.path = folder_.file("tokens")}};
    write_random_corpus(folder_.file("tokens"), run_, run_.training.steps * workload.tokens_per_step);
  }

  Figures measure(int zero_stage) {
    run_.parallelism.zero_stage = zero_stage;
    run_.parallelism.zero_scope = zero_stage == 0 ? spec::ZeroScope::world : zero_scope_;
    const plan::StepMemory memory = plan::step_memory(run_, options_.workers, 0, host_of_);
    const std::string output = folder_.file(fmt::format("zero{}", zero_stage));
    write_atomically(folder_.file("run.toml"), spec::to_toml(run_));
    run_workers({std::filesystem::read_symlink("/proc/self/exe").string(), "train", folder_.file("run.toml"),
                 "--job.dump_folder", output},
                {.count = options_.workers, .pretended_hosts = options_.hosts});
    std::ifstream in(output + "/metrics.jsonl");
    Json last;
    for (std::string line; std::getline(in, line);) last = Json::parse(line);
    LOCKSTEP_CHECK(!last.is_null(), "a run of two steps leaves a line for each");
    const double before =
        last.at("predicted_memory_mib").get<double>() - static_cast<double>(memory.total()) / kMib;
    const auto sharers = static_cast<double>(plan::sharers_of(run_, options_.workers, host_of_));
    const auto parameters = static_cast<double>(spec::parameter_count(run_.model)) /
                            static_cast<double>(run_.parallelism.pipeline * run_.parallelism.tensor);
    return {.zero_stage = zero_stage,
            .formula_mib = formula_bytes(run_, sharers) * parameters / kMib,
            .state_mib = static_cast<double>(memory.total() - memory.activations) / kMib,
            .passing_mib = static_cast<double>(memory.activations) / kMib,
            .measured_mib = last.at("peak_memory_mib").get<double>() - before};
  }

 private:
  Options options_;
  spec::RunSpec run_;
  spec::ZeroScope zero_scope_ = run_.parallelism.zero_scope;
  std::vector<int> host_of_;  // by rank
  TemporaryFolder folder_;
};

std::string as_json(const Figures& figures) {
  Json line;
  line["zero_stage"] = figures.zero_stage;
  line["formula_mib"] = figures.formula_mib;
  line["state_mib"] = figures.state_mib;
  line["passing_mib"] = figures.passing_mib;
  line["predicted_mib"] = figures.predicted_mib();
  line["measured_mib"] = figures.measured_mib;
  return line.dump() + "\n";
}

std::string as_row(const Figures& figures) {
  return fmt::format("{:>5} {:>10.0f} {:>10.0f} {:>10.0f} {:>10.0f} {:>10.0f} {:>9.2f}x {:>9.2f}x\n",
                     figures.zero_stage, figures.formula_mib, figures.state_mib, figures.passing_mib,
                     figures.predicted_mib(), figures.measured_mib, figures.state_mib / figures.formula_mib,
                     figures.measured_mib / figures.predicted_mib());
}

}  // namespace

int run_memory_bench(const std::vector<std::string>& arguments, std::ostream& out) {
  const spec::SplitArguments split = spec::split_key_flags(arguments);
  CLI::App app("Measures what a worker keeps of a model in memory at each ZeRO stage.",
               "lockstep bench memory");
  Options options;
  app.footer(kNotes);
  app.add_option("--preset", options.preset, "Model")->capture_default_str();
  app.add_option("--workers", options.workers, "Processes that train together on this host")
      ->check(whole_number(1, kMaxWorld))
      ->capture_default_str();
  add_pretended_hosts(app, options.hosts);
  app.add_option("--seq-len", options.seq_len, "Tokens of a sequence")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str();
  app.add_flag("--json", options.json, "One JSON object per line");
  check_arguments(app, app.get_name(), split.others);
  std::string help;
  if (parse(app, split.others, help)) {
    print(out, help);
    return 0;
  }
  require_workers_on_each(options.hosts, options.workers);
  MemoryBench bench(options, split.key_flags);
  if (!options.json) {
    print(out, fmt::format("{:>5} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "zero", "formula",
                           "state", "passing", "predicted", "measured", "state/form", "meas/pred"));
  }
  for (int zero_stage = 0; zero_stage < kStages; ++zero_stage) {
    const Figures figures = bench.measure(zero_stage);
    print(out, options.json ? as_json(figures) : as_row(figures));
  }
  if (!options.json) print(out, "MiB of rank 0\n");
  return 0;
}

}  // namespace lockstep::cli
