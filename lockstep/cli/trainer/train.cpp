// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <csignal>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "lockstep/base/bytes.h"
#include "lockstep/base/error.h"
#include "lockstep/cli/arguments.h"
#include "lockstep/cli/errors.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/cli/trainer/commands.h"
#include "lockstep/cli/trainer/run_folder.h"
#include "lockstep/comm/connect.h"
#include "lockstep/rendezvous/launcher.h"
#include "lockstep/spec/load.h"
#include "lockstep/train/gemm_peak.h"
#include "lockstep/train/run.h"

namespace lockstep::cli {
namespace {

// What a handler may touch.
volatile std::sig_atomic_t signal_seen = 0;
void note_signal(int number) {
  signal_seen = number;
}

// While it lives, SIGINT and SIGTERM are wishes that wants_to_stop() tells of; a second one ends the process.
class StopSignals {
 public:
  StopSignals() {
    for (int number : {SIGINT, SIGTERM}) {
      struct sigaction action = {};
      action.sa_handler = note_signal;
      action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
      ::sigaction(number, &action, nullptr);
    }
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals() {
    for (int number : {SIGINT, SIGTERM}) std::signal(number, SIG_DFL);
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

// RUN.toml, --workers in any place, and keys as flags.
TrainArguments split_arguments(Arguments arguments) {
  TrainArguments split;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
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

// Makes the folder on rank 0. False on the other ranks when rank 0 could not: it says why, they keep quiet.
bool open_folder(const spec::RunSpec& run, const comm::Communicator& world,
                 std::optional<RunFolder>& folder) {
  std::exception_ptr refusal;
  if (world.rank() == 0) {
    try {
      folder.emplace(run, world.size());
    } catch (...) {
      refusal = std::current_exception();
    }
  }
  std::int32_t refused = refusal ? 1 : 0;
  world.all_reduce(as_writable_bytes_of(refused), {.dtype = DType::int32});
  if (refusal) std::rethrow_exception(refusal);
  return refused == 0;
}

int train_here(const spec::RunSpec& run, const comm::Communicator& world) {
  std::optional<RunFolder> folder;
  if (!open_folder(run, world, folder)) return kDone;
  train::prepare_process(run.training, world.size());
  const double gemm_peak = train::measured_gemm_peak(run.training.dtype, world);
  if (folder) folder->begin(gemm_peak);
  const StopSignals signals;
  train::RunHooks hooks = {.wants_to_stop = [] { return signal_seen != 0; }};
  if (folder) {
    hooks.after_step = [&](const train::StepReport& report) { folder->after_step(report); };
    hooks.trained = [&](const model::FlatLayout& layout, const train::Weights& weights) {
      folder->save(layout, weights);
    };
  }
  const train::RunSummary summary = train::run_training(run, world, hooks);
  if (folder) folder->finish(summary);
  // Without a sentence: finish() has said it, and other ranks need not.
  return summary.stopped && signal_seen != 0 ? kSignalBase + signal_seen : kDone;
}

// A failure of one worker ends all at once; a signal lets them finish their step.
constexpr std::chrono::minutes kGraceToFinishAStep{5};

int start_workers(const TrainArguments& arguments) {
  rendezvous::LaunchOptions options;
  options.command = {std::filesystem::read_symlink("/proc/self/exe").string(), "train", arguments.file};
  options.command.insert(options.command.end(), arguments.key_flags.begin(), arguments.key_flags.end());
  options.workers = arguments.workers;
  options.environment = rendezvous::process_environment();
  options.grace = kGraceToFinishAStep;
  const rendezvous::LaunchResult result = rendezvous::launch(options);
  if (result.interrupted_by != 0) throw Interrupted(result.interrupted_by);
  if (result.first_failure && result.first_failure->status.shell_code() >= kSignalBase) {
    std::cerr << "lockstep: " << result.first_failure->to_string()
              << "; it was the first to fail, and the others were ended\n";
  }
  return result.exit_code();
}

int train(Arguments given) {
  const TrainArguments arguments = split_arguments(given);
  const spec::RunSpec run = spec::load_run(arguments.file, arguments.key_flags);
  const rendezvous::Placement placement = rendezvous::placement_from_environment();
  const bool is_rank = placement.world.source != "default" || placement.rank.source != "default";
  if (is_rank && arguments.workers > 0) {
    throw UsageError(fmt::format("--workers starts ranks, but this process is rank {} of a run already ({})",
                                 placement.rank.value, placement.rank.source));
  }
  if (arguments.workers > 1) return start_workers(arguments);
  return train_here(run, comm::connect(placement, {.group = {.name = "dp"}}));
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
      "The same run gives the same losses and weights, bit for bit, on any number of workers that share its "
      "lanes.\n"
      "Ctrl-C ends all ranks after the same step.");
  command->callback(
      [&invocation] { invocation.action = [&invocation] { return train(invocation.trailing); }; });
}

}  // namespace lockstep::cli
