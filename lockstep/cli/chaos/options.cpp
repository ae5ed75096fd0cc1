// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/chaos/options.h"

#include <algorithm>

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/error.h"
#include "lockstep/base/world.h"
#include "lockstep/cli/arguments.h"
#include "lockstep/cli/bench/sizes.h"
#include "lockstep/cli/bench/torch_command.h"
#include "lockstep/cli/chaos/duration.h"
#include "lockstep/spec/load.h"
#include "lockstep/spec/setting.h"
#include "lockstep/spec/workload.h"

namespace lockstep::cli {
namespace {

constexpr int kMostFaults = 100'000;

constexpr const char* kNotes =
    "Trains the run once undisturbed and once with faults, for as many steps as take a little longer than "
    "--for without faults, "
    "and compares the digests of the last checkpoints. Times count from the first step.\n"
    "kill: SIGKILL for a worker. stop: SIGSTOP for one, half of the time for good. resize: one worker leaves "
    "or comes back, in turn. all: SIGKILL for all workers. launcher: SIGKILL for the process that keeps "
    "them, which is started again with --resume auto. all and launcher need checkpoints "
    "(--checkpoint.interval).\n"
    "With --against torchrun the same model is trained by PyTorch, which torchrun starts again from its "
    "checkpoints, with the same kills at the same times; it needs /usr/bin/python3 with torch.\n"
    "Every key of a run file is also a flag, as in --model.layers 4. docs/chaos.md says what the figures "
    "mean.\n"
    "Exit codes: 0 the digests are equal, 1 they differ; 75 when the disturbed run ended before its last "
    "step.";

struct Texts {
  std::string file;
  std::string mtbf = "20s";
  std::string duration = "10m";
  std::string gap;
  std::string faults = "kill,stop";
  std::string output;
  std::string reference;
  std::string against;
  int kills = 0;
  int resizes = 0;
};

void declare(CLI::App& app, Texts& texts, ChaosOptions& options) {
  app.footer(kNotes);
  app.add_option("RUN.toml", texts.file, "The run file; every key is also a flag")->required();
  app.add_option("-n,--workers", options.faults.workers, "Processes that train together")
      ->check(whole_number(2, kMaxWorld))
      ->capture_default_str();
  app.add_option("--mtbf", texts.mtbf, "Time between two faults, on average")->capture_default_str();
  app.add_option("--for", texts.duration, "Time during which faults come")->capture_default_str();
  app.add_option("--gap", texts.gap, "Least time between two faults");
  app.add_option("--faults", texts.faults,
                 fmt::format("Kinds, separated by commas: {}", fmt::join(fault_names(), ", ")))
      ->capture_default_str();
  app.add_option("--kills", texts.kills,
                 "Exactly so many kills, instead of --faults; --mtbf or --for says how close they come")
      ->check(whole_number(0, kMostFaults));
  app.add_option("--resizes", texts.resizes, "Exactly so many resizes, likewise")
      ->check(whole_number(0, kMostFaults));
  app.add_option("--seed", options.faults.seed, "Other faults with another one")->capture_default_str();
  app.add_option("--output", texts.output,
                 "Folder for both runs and the report; default: job.dump_folder with -chaos behind it");
  app.add_option("--reference", texts.reference,
                 "Folder of the undisturbed run of an earlier time: it is not trained again, and gives the "
                 "number of steps");
  app.add_option("--against", texts.against, "torchrun");
  app.add_flag("--json", options.json, "Print one JSON object");
}

std::vector<FaultKind> kinds_of(const std::string& list) {
  std::vector<FaultKind> kinds;
  const std::vector<std::string>& names = fault_names();
  for (const std::string& name : split_list(list, "--faults")) {
    expect_one_of("--faults", name, names);
    kinds.push_back(static_cast<FaultKind>(std::ranges::find(names, name) - names.begin()));
  }
  return kinds;
}

void set_faults(const CLI::App& app, const Texts& texts, PlanOptions& faults) {
  faults.mtbf_s = parse_duration("--mtbf", texts.mtbf);
  faults.duration_s = parse_duration("--for", texts.duration);
  if (!texts.gap.empty()) faults.least_gap_s = parse_duration("--gap", texts.gap);
  faults.exactly.assign(static_cast<std::size_t>(texts.kills), FaultKind::kill);
  faults.exactly.insert(faults.exactly.end(), static_cast<std::size_t>(texts.resizes), FaultKind::resize);
  const bool is_counted = !faults.exactly.empty();
  if (is_counted && app.count("--faults") > 0) {
    throw UsageError("--kills and --resizes say exactly what comes: leave out --faults");
  }
  if (is_counted && app.count("--mtbf") > 0 && app.count("--for") > 0) {
    throw UsageError("--for and --kills or --resizes say how often faults come: leave out --mtbf");
  }
  if (is_counted && app.count("--mtbf") > 0) {
    faults.duration_s = faults.mtbf_s * static_cast<double>(faults.exactly.size());
  }
  if (!is_counted) faults.kinds = kinds_of(texts.faults);
  if (faults.duration_s / faults.mtbf_s > kMostFaults && !is_counted) {
    throw UsageError(fmt::format("--for {} has more than {} times --mtbf {} in it", texts.duration,
                                 kMostFaults, texts.mtbf));
  }
  plan_faults(faults);  // refuses gaps that there is no room for
}

bool has_kind(const PlanOptions& faults, FaultKind kind) {
  return std::ranges::count(faults.kinds, kind) > 0 || std::ranges::count(faults.exactly, kind) > 0;
}

void check_run(const ChaosOptions& options) {
  const spec::RunSpec& run = options.run;
  if (!run.elastic.enabled) {
    throw UsageError("elastic.enabled = false: such a run ends with its first fault");
  }
  if (!run.checkpoint.enabled) {
    throw UsageError("checkpoint.enabled = false: without checkpoints there is nothing to compare");
  }
  if (!run.checkpoint.resume.empty()) {
    throw UsageError("checkpoint.resume: lockstep chaos begins its runs itself");
  }
  const bool goes_back =
      has_kind(options.faults, FaultKind::all) || has_kind(options.faults, FaultKind::launcher);
  if (goes_back && run.checkpoint.interval == 0 && run.checkpoint.interval_seconds == 0) {
    throw UsageError(
        "faults that all workers die of lead back to the newest checkpoint, and this run makes none on its "
        "way: set --checkpoint.interval, or leave out all and launcher");
  }
  const spec::Parallelism& parallelism = run.parallelism;
  const bool has_parts = parallelism.tensor * parallelism.pipeline > 1 || parallelism.data != -1;
  if (has_resizes(options.faults) && (has_parts || !parallelism.lane_weights.empty())) {
    throw UsageError(
        "a resize takes one worker at a time, and this run needs several for each replica of its model, or "
        "says how many there are");
  }
  if (options.against_torchrun) require_torch_can(run, options.faults.workers, "--against torchrun");
  if (options.against_torchrun && !has_kind(options.faults, FaultKind::kill)) {
    throw UsageError("--against torchrun compares kills, and there are none among these faults");
  }
}

}  // namespace

bool has_resizes(const PlanOptions& faults) {
  return has_kind(faults, FaultKind::resize);
}

std::optional<ChaosOptions> parse_chaos_options(const std::vector<std::string>& arguments,
                                                std::string& help) {
  const spec::SplitArguments split = spec::split_key_flags(arguments);
  CLI::App app("Trains a run under random faults, and tells what they have cost.", "lockstep chaos");
  Texts texts;
  ChaosOptions options;
  declare(app, texts, options);
  check_arguments(app, app.get_name(), split.others);
  if (parse(app, split.others, help)) return std::nullopt;
  set_faults(app, texts, options.faults);
  if (!texts.against.empty()) {
    expect_one_of("--against", texts.against, std::vector<std::string>{"torchrun"});
    options.against_torchrun = true;
  }
  const auto [run, places] = spec::load_placed_run(texts.file, split.key_flags);
  options.run = spec::settled(run, options.faults.workers, places);
  options.output = texts.output.empty() ? run.job.dump_folder + "-chaos" : texts.output;
  if (!texts.reference.empty()) options.reference = texts.reference;
  check_run(options);
  return options;
}

}  // namespace lockstep::cli
