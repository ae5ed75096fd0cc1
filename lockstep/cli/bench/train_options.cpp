// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/bench/train_options.h"

#include <algorithm>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/error.h"
#include "lockstep/base/world.h"
#include "lockstep/cli/arguments.h"
#include "lockstep/cli/bench/sizes.h"
#include "lockstep/cli/bench/torch_command.h"
#include "lockstep/rendezvous/launcher.h"
#include "lockstep/spec/choices.h"
#include "lockstep/spec/load.h"
#include "lockstep/spec/presets.h"
#include "lockstep/spec/setting.h"
#include "lockstep/spec/workload.h"

namespace lockstep::cli {
namespace {

const std::vector<std::string> kOpponents = {"pytorch",       "one-process", "two-workers",
                                             "data-parallel", "undivided",   "1f1b",
                                             "inexact",       "unshared",    "elastic"};

constexpr const char* kNotes =
    "Every turn is a run of `lockstep train` on random tokens, and then one of each opponent with the same "
    "model and batch: pytorch is DistributedDataParallel of /usr/bin/python3's torch, one-process the same "
    "run in a single process with all the threads, data-parallel the same without pipeline and tensor "
    "parallelism, two-workers that with two of them, undivided the same with one tensor lane, 1f1b the same "
    "with that schedule, inexact the same with comm.exact = false, unshared the same with "
    "parallelism.zero_stage = 0, elastic the same under a supervisor, ready to lose workers. A figure is the "
    "median over turns of the median step "
    "after the first, with the least and the largest turn beside it. gflops counts 6 N + 12 L H Q T per "
    "token; mfu is its share of what our GEMM reaches on 1024 x 1024 x 1024 in the same dtype on the same "
    "threads, measured by all workers at once at the start of each turn. peak_rss_mib is of rank 0.\n"
    "Every key of a run file is also a flag, as in --model.layers 4 (docs/configuration.md lists them).";

struct Texts {
  std::string preset = "gpt2-124m";
  std::string dtype = "bf16";
  std::string micro_batch = "2";
  std::string seq_len = "512";
  std::string steps = "6";
  std::string against;
};

void declare(CLI::App& app, Texts& texts, TrainBenchOptions& options) {
  app.footer(kNotes);
  app.add_option("--preset", texts.preset, "Model")->capture_default_str();
  app.add_option("--workers", options.workers, "Processes that train together on this host")
      ->check(whole_number(1, kMaxWorld))
      ->capture_default_str();
  app.add_option("--dtype", texts.dtype, "fp32 or bf16; fp16 without --against pytorch")
      ->capture_default_str();
  app.add_option("--micro-batch", texts.micro_batch, "Sequences of a worker in a step")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--seq-len", texts.seq_len, "Tokens of a sequence")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--steps", texts.steps, "Steps of a turn; the first is not counted")
      ->check(whole_number(2, 1 << 20))
      ->capture_default_str();
  app.add_option("--turns", options.turns, "Turns of each system")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  app.add_option("--against", texts.against,
                 fmt::format("Opponents, separated by commas: {}", fmt::join(kOpponents, ", ")));
  app.add_flag("--json", options.json, "One JSON object per line");
}

spec::RunSpec run_of(const Texts& texts, const std::vector<std::string>& key_flags) {
  const auto names = spec::preset_names();
  expect_one_of("--preset", texts.preset, std::vector<std::string>(names.begin(), names.end()));
  const auto dtypes = spec::names_of(DType{});
  expect_one_of("--dtype", texts.dtype, std::vector<std::string>(dtypes.begin(), dtypes.end()));
  std::vector<std::string> flags = {"--model.preset",
                                    texts.preset,
                                    "--training.dtype",
                                    texts.dtype,
                                    "--training.seq_len",
                                    texts.seq_len,
                                    "--training.steps",
                                    texts.steps,
                                    "--training.micro_batch_size",
                                    texts.micro_batch,
                                    "--metrics.enable_tensorboard",
                                    "false"};
  flags.insert(flags.end(), key_flags.begin(), key_flags.end());
  spec::RunSpec run = spec::parse_run("", "lockstep bench train", flags);
  if (run.training.steps < 2) {
    throw UsageError("lockstep bench train needs at least 2 steps: the first is not counted");
  }
  return run;
}

}  // namespace

std::optional<TrainBenchOptions> parse_train_bench_options(const std::vector<std::string>& arguments,
                                                           std::string& help) {
  const spec::SplitArguments split = spec::split_key_flags(arguments);
  CLI::App app("Measures training on this host, also against PyTorch.", "lockstep bench train");
  Texts texts;
  TrainBenchOptions options;
  declare(app, texts, options);
  check_arguments(app, app.get_name(), split.others);
  if (parse(app, split.others, help)) return std::nullopt;
  options.run = run_of(texts, split.key_flags);
  if (!texts.against.empty()) options.against = split_list(texts.against, "--against");
  for (const std::string& opponent : options.against) {
    expect_one_of("--against", opponent, kOpponents);
    if (opponent == "pytorch") require_torch_can(options.run, options.workers, "--against pytorch");
  }
  return options;
}

}  // namespace lockstep::cli
