// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <csignal>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "lockstep/base/bytes.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/checkpoint/store/store.h"
#include "lockstep/cli/arguments.h"
#include "lockstep/cli/errors.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/cli/trainer/commands.h"
#include "lockstep/cli/trainer/rank.h"
#include "lockstep/cli/trainer/restart_policy.h"
#include "lockstep/cli/trainer/run_folder.h"
#include "lockstep/cli/workers.h"
#include "lockstep/plan/lanes.h"
#include "lockstep/plan/pipeline.h"
#include "lockstep/rendezvous/launcher.h"
#include "lockstep/spec/load.h"
#include "lockstep/train/agreement.h"
#include "lockstep/train/gemm_peak.h"
#include "lockstep/train/model_of.h"
#include "lockstep/train/run.h"

namespace lockstep::cli {
namespace {

// What a handler may touch.
volatile std::sig_atomic_t signal_seen = 0;
volatile std::sig_atomic_t seen_at = 0;  // in seconds

std::sig_atomic_t seconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::sig_atomic_t>(now.tv_sec);
}

// The same wish may come twice: to this process and to its group, or through the launcher.
constexpr std::sig_atomic_t kSameWish = 2;

void note_signal(int number) {
  if (signal_seen == 0) {
    signal_seen = number;
    seen_at = seconds_now();
  } else if (seconds_now() - seen_at > kSameWish) {
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
}

// Slurm sends the last one as a warning before it ends a job.
constexpr std::array kStopSignals = {SIGINT, SIGTERM, SIGUSR1};

// While it lives, these are wishes that wants_to_stop() tells of; one that comes seconds later ends the
// process.
class StopSignals {
 public:
  StopSignals() {
    for (int number : kStopSignals) {
      struct sigaction action = {};
      action.sa_handler = note_signal;
      action.sa_flags = SA_RESTART;
      ::sigaction(number, &action, nullptr);
    }
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals() {
    for (int number : kStopSignals) std::signal(number, SIG_DFL);
  }
};

struct TrainArguments {
  std::string file;                    // of the run
  std::vector<std::string> key_flags;  // --section.key value
  int workers = 0;                     // 0: not given
};

int workers_of(const std::string& value) {
  std::size_t read = 0;
  int count = 0;
  try {
    count = std::stoi(value, &read);
  } catch (const std::exception&) {
    read = 0;
  }
  if (read != value.size() || count < 1 || count > rendezvous::kMaxWorld) {
    throw UsageError(
        fmt::format("--workers is '{}': expected a whole number from 1 to {}", value, rendezvous::kMaxWorld));
  }
  return count;
}

// Flags that stand for keys.
std::string written_out(const std::string& argument) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kShort = {
      {{"--resume", "--checkpoint.resume"}, {"--init-from", "--checkpoint.initial_load_path"}}};
  for (const auto& [name, key] : kShort) {
    const std::string_view rest = std::string_view(argument).substr(std::min(name.size(), argument.size()));
    if (argument.starts_with(name) && (rest.empty() || rest.front() == '=')) {
      return std::string(key).append(rest);
    }
  }
  return argument;
}

// RUN.toml, --workers in any place, and keys as flags.
TrainArguments split_arguments(Arguments arguments) {
  TrainArguments split;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string argument = written_out(arguments[i]);
    if (argument == "--workers" || argument == "-n") {
      if (i + 1 == arguments.size()) throw UsageError("--workers needs a number");
      split.workers = workers_of(arguments[++i]);
    } else if (argument.starts_with("--workers=")) {
      split.workers = workers_of(argument.substr(10));
    } else if (!is_flag(argument) && split.file.empty() && split.key_flags.empty()) {
      split.file = argument;
    } else {
      split.key_flags.push_back(argument);
    }
  }
  if (split.file.empty()) {
    throw UsageError("no run file: write it first, as in `lockstep train run.toml --workers 2`");
  }
  return split;
}

int train_here(const spec::RunSpec& run, const comm::Communicator& world) {
  const StopSignals signals;
  std::optional<RunFolder> folder;
  train::together(world, [&] {
    if (world.rank() == 0) folder.emplace(run, world.size());
  });
  const double gemm_peak = train::measured_gemm_peak(run.training.dtype, world);
  train::RunHooks hooks = {.wants_to_stop = [] { return signal_seen != 0; }};
  if (run.checkpoint.enabled) hooks.checkpoints = checkpoint_folder(run);
  if (folder) {
    hooks.tokenizer_digest = folder->tokenizer_digest();
    hooks.ready = [&] { folder->begin(gemm_peak, world.ranks_on_this_host(), world.hosts()); };
    hooks.resumed = [&](const train::Resumed& resumed) { folder->resumed(resumed); };
    hooks.after_step = [&](const train::StepReport& report) { folder->after_step(report); };
    hooks.saved = [&](const train::SaveReport& report) { folder->saved(report); };
  }
  hooks.trained = [&](const model::FlatLayout& whole, const at::Tensor& values) {
    if (folder) folder->save(whole, values);
  };
  const train::RunSummary summary = train::run_training(run, world, hooks);
  if (folder && !summary.checkpoint.empty()) folder->save(summary.checkpoint);
  if (folder) folder->finish(summary);
  if (!summary.stopped) return kDone;
  // Without a sentence: finish() has said it, and other ranks need not. The signal may have come to another
  // one.
  if (run.checkpoint.enabled) return kInterrupted;
  return kSignalBase + (signal_seen != 0 ? static_cast<int>(signal_seen) : SIGTERM);
}

// A failure of one worker ends all soon; a signal lets them finish their step.
constexpr std::chrono::minutes kGraceToFinishAStep{5};

rendezvous::LaunchResult start_workers(const TrainArguments& arguments,
                                       const std::vector<std::string>& more) {
  rendezvous::LaunchOptions options;
  options.command = {std::filesystem::read_symlink("/proc/self/exe").string(), "train", arguments.file};
  options.command.insert(options.command.end(), arguments.key_flags.begin(), arguments.key_flags.end());
  options.command.insert(options.command.end(), more.begin(), more.end());
  options.workers = arguments.workers;
  options.environment = rendezvous::process_environment();
  options.grace_after_signal = kGraceToFinishAStep;
  return rendezvous::launch(options);
}

// A mistake would be made again; a worker that was killed or lost need not be.
bool may_be_tried_again(const rendezvous::LaunchResult& result) {
  if (result.interrupted_by != 0 || result.output_error != 0 || !result.first_failure) return false;
  return result.first_failure->status.signal != 0 || result.exit_code() == kInterrupted;
}

// Flags with which workers that have failed go on; none when what the folder holds must not be touched.
std::optional<std::vector<std::string>> flags_to_go_on(const spec::RunSpec& run, bool held_a_run) {
  if (!checkpoint::CheckpointStore(checkpoint_folder(run)).committed().empty()) {
    return std::vector<std::string>{"--checkpoint.resume", "auto"};
  }
  // Nothing was saved: as the first time, over what that has left.
  if (held_a_run && run.checkpoint.resume.empty() && !run.job.overwrite) return std::nullopt;
  return std::vector<std::string>{"--job.overwrite", "true"};
}

std::int64_t newest_step(const spec::RunSpec& run) {
  const auto all = checkpoint::CheckpointStore(checkpoint_folder(run)).committed();
  return all.empty() ? -1 : all.front().step;
}

// Starts workers until they have done their work, or it makes no sense to try again.
int supervise(const spec::RunSpec& run, const TrainArguments& arguments) {
  RestartPolicy policy(run.elastic);
  const bool held_a_run = holds_a_run(run.job.dump_folder);
  std::vector<std::string> more;
  for (;;) {
    const rendezvous::LaunchResult result = start_workers(arguments, more);
    if (result.interrupted_by != 0 && result.exit_code() == kInterrupted) return kInterrupted;
    std::optional<std::chrono::milliseconds> wait;
    if (run.elastic.enabled && run.checkpoint.enabled && may_be_tried_again(result)) {
      if (const auto flags = flags_to_go_on(run, held_a_run)) {
        more = *flags;
        wait = policy.after_failure(newest_step(run), std::chrono::steady_clock::now());
      }
    }
    if (!wait) {
      require_success(result);
      return kDone;
    }
    const std::int64_t step = newest_step(run);
    log::warning(fmt::format(
        "{}; all workers start again {}{} (restart {} of {})", result.first_failure->to_string(),
        step < 0 ? "from the beginning" : fmt::format("from step {}", step),
        wait->count() > 0 ? fmt::format(" in {:.1f} s", 1e-3 * static_cast<double>(wait->count())) : "",
        policy.restarts(), run.elastic.max_restarts));
    std::this_thread::sleep_for(*wait);
  }
}

int train(Arguments given) {
  const TrainArguments arguments = split_arguments(given);
  const spec::RunSpec given_run = spec::load_run(arguments.file, arguments.key_flags);
  const spec::RunSpec run = train::as_saved(given_run, checkpoint_folder(given_run));
  const rendezvous::Placement placement = rendezvous::placement_from_environment();
  const bool is_rank = placement.world.source != "default" || placement.rank.source != "default";
  if (is_rank && arguments.workers > 0) {
    throw UsageError(fmt::format("--workers starts ranks, but this process is rank {} of a run already ({})",
                                 placement.rank.value, placement.rank.source));
  }
  if (arguments.workers > 1) {
    // Refuse what does not fit before anything is started.
    plan::first_ownership(run, arguments.workers);
    plan::read_pipeline_plan(run, arguments.workers);
    train::require_division(run);
    return supervise(run, arguments);
  }
  return run_as_rank(run, [&](const comm::Communicator& world) { return train_here(run, world); });
}

class TrainUsage : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string name) const override {
    return fmt::format("Usage: {} RUN.toml [--workers N] [--SECTION.KEY VALUE ...]\n\n", name);
  }
};

}  // namespace

void add_train(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("train", kTrainSummary);
  command->prefix_command();
  command->formatter(std::make_shared<TrainUsage>());
  command->footer(
      "Every key of the run file is also a flag, as in --training.steps 200 (docs/configuration.md lists "
      "them).\n"
      "--workers starts that many ranks on this host; under torchrun, mpirun or srun the ranks come from "
      "there.\n"
      "--parallelism.pipeline P cuts the model into P stages, each on a P-th of the workers "
      "(docs/parallelism.md).\n"
      "--parallelism.tensor T has T workers compute each layer together.\n"
      "The same run gives the same losses and weights, bit for bit, on any number of workers, stages and "
      "shares of layers that have its lanes and tensor lanes.\n"
      "Checkpoints are in the folder of the run; --resume auto goes on with the newest good one, on any "
      "layout, "
      "and --resume PATH\nwith another. --init-from PATH begins a new run with the weights of a checkpoint "
      "or a "
      "Hugging Face folder.\n"
      "When a worker is killed or lost, --workers starts all of them again from the newest checkpoint "
      "(elastic.enabled).\n"
      "Ctrl-C, SIGTERM and SIGUSR1 end all ranks after the same step with a checkpoint, and with exit code "
      "75.");
  command->callback(
      [&invocation] { invocation.action = [&invocation] { return train(invocation.trailing); }; });
}

}  // namespace lockstep::cli
