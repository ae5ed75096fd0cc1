// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <set>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "lockstep/base/counted.h"
#include "lockstep/base/error.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/world.h"
#include "lockstep/cli/arguments.h"
#include "lockstep/cli/checkpoint/json.h"
#include "lockstep/cli/errors.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/cli/output.h"
#include "lockstep/cli/temporary_folder.h"
#include "lockstep/cli/trainer/commands.h"
#include "lockstep/cli/trainer/rank.h"
#include "lockstep/cli/trainer/run_record.h"
#include "lockstep/cli/workers.h"
#include "lockstep/rendezvous/launcher.h"
#include "lockstep/spec/load.h"
#include "lockstep/spec/setting.h"
#include "lockstep/spec/workload.h"
#include "lockstep/spec/write.h"
#include "lockstep/train/model_of.h"

namespace lockstep::cli {
namespace {

constexpr std::string_view kRecord = "record";  // what a rank is asked for: record RUN.toml STEPS PREFIX

struct VerifyOptions {
  std::string file;
  std::vector<std::string> key_flags;
  int workers = 2;
  int hosts = 1;
  std::int64_t steps = 5;
  bool json = false;
};

// Of all ranks of a run.
struct RecordedRun {
  std::vector<RunRecord> ranks;
  std::int64_t lane_moves = 0;  // after steps that were not the last
};

std::string record_file(const std::string& prefix, int rank) {
  return fmt::format("{}.{}", prefix, rank);
}
std::string lane_moves_file(const std::string& prefix) {
  return prefix + ".lane_moves";
}

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// One rank of one of the runs.
int record_run(const spec::RunSpec& run, std::int64_t steps, const std::string& prefix,
               const comm::Communicator& world) {
  RunRecord record;
  train::StepReport last;
  std::int64_t lane_moves = 0;
  train::run_training(run, world,
                      {.after_step =
                           [&](const train::StepReport& report) {
                             last = report;
                             if (!report.lanes.empty() && report.step < steps) ++lane_moves;
                           },
                       .see_state = [&](const train::StepState& state) { record_step(last, state, record); },
                       .wants_to_stop = [&] { return last.step >= steps; }});
  write_atomically(record_file(prefix, world.rank()), to_text(record));
  if (world.rank() == 0) write_atomically(lane_moves_file(prefix), std::to_string(lane_moves));
  return kDone;
}

// Trains `run` on that many workers, as if on that many hosts.
RecordedRun recorded(const spec::RunSpec& run, int workers, int hosts, std::int64_t steps) {
  const TemporaryFolder folder;
  spec::RunSpec here = run;
  here.job.dump_folder = folder.file("");
  write_atomically(folder.file("run.toml"), spec::to_toml(here));
  const std::string prefix = folder.file("rank");
  rendezvous::LaunchOptions options;
  options.command = {std::filesystem::read_symlink("/proc/self/exe").string(),
                     "verify",
                     std::string(kRecord),
                     folder.file("run.toml"),
                     std::to_string(steps),
                     prefix};
  options.workers = workers;
  options.pretended_hosts = hosts;
  options.environment = rendezvous::process_environment();
  require_success(rendezvous::launch(options));
  RecordedRun result = {.ranks = {}, .lane_moves = std::stoll(text_of(lane_moves_file(prefix)))};
  for (int rank = 0; rank < workers; ++rank) {
    result.ranks.push_back(parse_record(text_of(record_file(prefix, rank))));
  }
  return result;
}

std::int64_t steps_in(const RunRecord& record) {
  std::set<std::int64_t> steps;
  for (const RecordedFact& fact : record) steps.insert(fact.step);
  LOCKSTEP_CHECK(!steps.empty(), "a run of no steps was compared");
  return std::ssize(steps);
}

struct Comparison {
  std::int64_t steps = 0;  // that one process has trained
  int workers = 0;
  std::int64_t lane_moves = 0;
  std::size_t facts = 0;  // of each rank
  std::optional<RecordedDifference> difference;
};

std::string to_json(const Comparison& comparison) {
  Json json = {{"identical", !comparison.difference},
               {"steps", comparison.steps},
               {"workers", comparison.workers},
               {"lane_moves", comparison.lane_moves},
               {"compared", comparison.facts}};
  if (comparison.difference) {
    const RecordedFact& fact = comparison.difference->fact;
    json["difference"] = {{"step", fact.step}, {"what", fact.what}};
    if (!fact.tensor.empty()) json["difference"]["tensor"] = fact.tensor;
    json["difference"]["rank"] = comparison.difference->rank;
  }
  return json_line(json);
}

std::string to_sentence(const Comparison& comparison) {
  if (comparison.difference) {
    return fmt::format("different: {} on rank {} of {} is not that of one process\n",
                       describe(comparison.difference->fact), comparison.difference->rank,
                       comparison.workers);
  }
  return fmt::format(
      "identical: {} on 1 process and on {}{}; {} losses, gradient norms, gradients and weights of every "
      "rank compared bit for bit\n",
      counted(comparison.steps, "step"), comparison.workers,
      comparison.lane_moves > 0 ? fmt::format(", whose lanes moved after {} of them", comparison.lane_moves)
                                : "",
      comparison.facts);
}

int compare(const VerifyOptions& options) {
  require_workers_on_each(options.hosts, options.workers);
  const spec::PlacedRun given = spec::load_placed_run(options.file, options.key_flags);
  spec::RunSpec run = spec::settled(given.run, options.workers, given.places);
  train::require_division(run, given.places);
  run.parallelism.data = -1;
  run.validation.freq = 0;
  run.metrics.enable_trace = false;
  const std::int64_t steps = std::min(options.steps, run.training.steps);
  const RunRecord expected = recorded(spec::plain_run(run), 1, 1, steps).ranks.front();
  const RecordedRun found = recorded(run, options.workers, options.hosts, steps);
  const Comparison comparison = {.steps = steps_in(expected),
                                 .workers = options.workers,
                                 .lane_moves = found.lane_moves,
                                 .facts = expected.size(),
                                 .difference = first_difference(expected, found.ranks)};
  print(std::cout, options.json ? to_json(comparison) : to_sentence(comparison));
  return comparison.difference ? kDiffers : kDone;
}

int verify(const std::vector<std::string>& arguments) {
  if (arguments.size() == 4 && arguments.front() == kRecord) {
    const spec::RunSpec run = spec::load_run(arguments[1]);
    return run_as_rank(run, [&](const comm::Communicator& world) {
      return record_run(run, std::stoll(arguments[2]), arguments[3], world);
    });
  }
  const spec::SplitArguments split = spec::split_key_flags(arguments);
  VerifyOptions options;
  options.key_flags = split.key_flags;
  // A run that is there already leaves nothing to compare; nor does what it says contradict anything.
  options.key_flags.push_back("--checkpoint.resume=");
  CLI::App app(kVerifySummary, "lockstep verify");
  app.add_option("RUN.toml", options.file, "The run file; every key is also a flag")->required();
  app.add_option("-n,--workers", options.workers, "Processes to compare with one")
      ->check(whole_number(2, kMaxWorld))
      ->capture_default_str();
  add_pretended_hosts(app, options.hosts);
  app.add_option("--steps", options.steps, "How many steps, at most those of the run")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str();
  app.add_flag("--json", options.json, "Print one JSON object");
  app.footer(
      "Both runs have the lanes and tensor lanes of the larger one; that of one process recomputes,\n"
      "shares out and offloads nothing. Both begin anew, whatever checkpoint.resume says.\n"
      "After every step the loss, the gradient norm, and the gradients and the weights of each parameter\n"
      "are compared on every rank. If lanes moved (parallelism.rebalance_freq), it says after how many "
      "steps.\n"
      "Exit codes: 0 identical, 1 different; the first step, the tensor and the rank are named.");
  check_arguments(app, app.get_name(), split.others);
  std::string help;
  if (parse(app, split.others, help)) {
    print(std::cout, help);
    return kDone;
  }
  return compare(options);
}

}  // namespace

void add_verify(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("verify", kVerifySummary);
  // It reads its own flags, --help among them.
  command->prefix_command();
  command->set_help_flag("");
  command->callback(
      [&invocation] { invocation.action = [&invocation] { return verify(invocation.trailing); }; });
}

}  // namespace lockstep::cli
