// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include <CLI/App.hpp>
#include <fmt/format.h>

#include "lockstep/base/bytes.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/cli/arguments.h"
#include "lockstep/cli/errors.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/cli/output.h"
#include "lockstep/cli/trainer/commands.h"
#include "lockstep/cli/trainer/rank.h"
#include "lockstep/cli/trainer/run_claim.h"
#include "lockstep/cli/trainer/stop_signals.h"
#include "lockstep/cli/trainer/supervise.h"
#include "lockstep/cli/trainer/train_arguments.h"
#include "lockstep/cli/trainer/world_run.h"
#include "lockstep/elastic/membership.h"
#include "lockstep/plan/lanes.h"
#include "lockstep/plan/pipeline.h"
#include "lockstep/rendezvous/environment.h"
#include "lockstep/spec/load.h"
#include "lockstep/spec/workload.h"
#include "lockstep/train/agreement.h"
#include "lockstep/train/gemm_peak.h"
#include "lockstep/train/generations.h"
#include "lockstep/train/model_of.h"
#include "lockstep/train/replicas.h"
#include "lockstep/train/run.h"
#include "lockstep/train/settings.h"

namespace lockstep::cli {
namespace {

// Trains with the world that this process is a rank of from the beginning to the end.
int train_in_one_world(const spec::PlacedRun& given, const comm::Communicator& world) {
  const StopSignals signals;
  std::optional<LauncherLock> lock;
  spec::RunSpec run;
  train::together(world, [&] {
    run = spec::settled(given.run, world.size(), given.places);
    train::require_division(run, given.places);
    if (world.rank() == 0) lock.emplace(run);
  });
  WorldRun around(run, world, {.gemm_peak = train::measured_gemm_peak(run.training.dtype, world)});
  const train::RunSummary summary = train::run_training(run, world, around.hooks());
  if (const auto lost = around.lost_output()) throw OutputError(*lost);
  return exit_code_of(run, summary);
}

// The run goes on without this worker; whoever has started it may start another one.
int leave(const Error& reason) {
  log::warning(fmt::format("this worker leaves the run: {}", reason.what()));
  return kInterrupted;
}

// Trains as a worker whose places a coordinator gives.
int train_as_member(const spec::RunSpec& run, elastic::Membership::Options options) {
  const StopSignals signals;
  const rendezvous::Placement placement = rendezvous::placement_from_environment();
  elastic::Membership membership(std::move(options));
  std::optional<WorldRun> around;
  double gemm_peak_of_one = 0;
  const auto equip = [&](const comm::Communicator& world, bool goes_on) {
    train::together(world, [&] {
      train::prepare_process(run.training, placement.threads.value, world.ranks_on_this_host());
    });
    world.all_reduce(as_writable_bytes_of(gemm_peak_of_one),
                     {.dtype = DType::fp64, .op = comm::ReduceOp::max});
    // Measured once: it takes as long as a step.
    if (gemm_peak_of_one == 0) {
      gemm_peak_of_one = train::measured_gemm_peak(run.training.dtype, world) / world.size();
    }
    around.emplace(run, world,
                   WorldRun::Options{
                       .gemm_peak = gemm_peak_of_one * world.size(), .goes_on = goes_on, .is_elastic = true});
    return around->hooks();
  };
  std::optional<std::string> lost_output;
  const auto end = [&] {
    if (around) lost_output = around->lost_output();
    around.reset();
  };
  try {
    const train::RunSummary summary = train::train_in_generations(run, membership, placement, equip, end);
    end();
    if (lost_output) throw OutputError(*lost_output);
    return exit_code_of(run, summary);
  } catch (const train::ToldElsewhere& told) {
    return verdict_on(told.cause()).code;
  } catch (const train::Evicted& evicted) {
    return leave(evicted);
  } catch (const train::CorruptState& corrupt) {
    return leave(corrupt);
  } catch (const elastic::Dismissed& dismissed) {
    return dismissed.is_over() ? kDone : leave(dismissed);
  }
}

// Refuses what does not fit before anything is started.
void require_layout(const spec::RunSpec& run, int workers, const spec::Places& places) {
  train::require_order(plan::first_ownership(run, workers), train::sum_options(run.comm));
  plan::read_pipeline_plan(run, workers);
  train::require_division(run, places);
}

int start_workers(const spec::PlacedRun& given, const TrainArguments& arguments) {
  const WorkerCommand command = {arguments.file, arguments.key_flags, std::max(1, arguments.workers)};
  const spec::RunSpec run = spec::settled(given.run, command.workers, given.places);
  require_layout(run, command.workers, given.places);
  if (run.elastic.enabled) return supervise(run, command, arguments.listen);
  if (arguments.listen) throw UsageError("--listen lets workers join, which elastic.enabled = false forbids");
  return launch_once(run, command);
}

// Its default would end this process and with it the run, or make a worker start again. Workers inherit it.
void ignore_signal_without_meaning() {
  std::signal(SIGUSR2, SIG_IGN);
}

int show_help(const CLI::App& command) {
  print(std::cout, command.help("lockstep"));
  return kDone;
}

int train(Arguments given, const CLI::App& command) {
  const TrainArguments arguments = split_arguments("train", given);
  if (arguments.asks_for_help) return show_help(command);
  ignore_signal_without_meaning();
  if (arguments.join) throw UsageError("--join is for `lockstep agent`; `lockstep train` has --listen");
  spec::PlacedRun placed = spec::load_placed_run(arguments.file, arguments.key_flags);
  // Whoever has started a member has settled everything. What the run was begun with may be gone.
  if (auto member = elastic::membership_from_environment()) {
    return train_as_member(placed.run, std::move(*member));
  }
  placed.run = train::as_saved(placed.run, checkpoint_folder(placed.run));
  const rendezvous::Placement placement = rendezvous::placement_from_environment();
  const bool is_rank = placement.world.source != "default" || placement.rank.source != "default";
  if (is_rank && (arguments.workers > 0 || arguments.listen)) {
    throw UsageError(fmt::format("--workers starts ranks, but this process is rank {} of a run already ({})",
                                 placement.rank.value, placement.rank.source));
  }
  if (arguments.workers > 1 || arguments.listen) return start_workers(placed, arguments);
  return run_as_rank(placed.run,
                     [&](const comm::Communicator& world) { return train_in_one_world(placed, world); });
}

int agent(Arguments given, const CLI::App& command) {
  const TrainArguments arguments = split_arguments("agent", given);
  if (arguments.asks_for_help) return show_help(command);
  ignore_signal_without_meaning();
  if (!arguments.join) {
    throw UsageError(
        "no run to join: give the address that `lockstep train --listen` has, as in --join node1:29400");
  }
  const spec::RunSpec run = spec::load_run(arguments.file, arguments.key_flags);
  return tend(run, {arguments.file, arguments.key_flags, std::max(1, arguments.workers)}, *arguments.join);
}

// The flags of a command are beside those of the keys, so the parser does not know of them.
class TrainUsage : public CLI::Formatter {
 public:
  explicit TrainUsage(std::string flags) : flags_(std::move(flags)) {}
  std::string make_usage(const CLI::App*, std::string name) const override {
    return fmt::format("Usage: {} RUN.toml {} [--SECTION.KEY VALUE ...]\n", name, flags_);
  }

 private:
  std::string flags_;
};

}  // namespace

void add_train(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("train", kTrainSummary);
  command->prefix_command();
  command->set_help_flag("");  // flags may come in any order, so the command reads all of them
  command->formatter(std::make_shared<TrainUsage>("[FLAGS]"));
  command->footer(R"(Flags:
  -n, --workers N             Start so many ranks on this host; under torchrun, mpirun or srun they come from there
  --listen ADDRESS:PORT       Let `lockstep agent` on other hosts add workers; except on loopback it needs a secret
                              (lockstep keygen)
  --resume auto | PATH        Go on with the newest good checkpoint of the run's folder, or with another one,
                              on any layout (checkpoint.resume)
  --init-from PATH            Begin a new run with the weights of a checkpoint or of a Hugging Face folder
                              (checkpoint.initial_load_path)
  --SECTION.KEY VALUE         Any key of the run file, as in --training.steps 200 (docs/configuration.md lists them)
  -h, --help                  Print this help message and exit

Layouts (docs/parallelism.md): --parallelism.pipeline P cuts the model into P stages, --parallelism.tensor T has T
workers compute each layer together, and the rest of the workers share the batch; one of the two can be -1: what
the other axes leave. The same run gives the same losses and weights, bit for bit, on any of them that have its
lanes and tensor lanes.

When a worker is killed or lost, the others go on after the same step, and it is started again (elastic.enabled).
Ctrl-C, SIGTERM, SIGHUP and SIGUSR1 end all ranks after the same step with a checkpoint and with exit code 75;
those that are ignored at the start, as SIGHUP under nohup, do not.)");
  command->callback([&invocation, command] {
    invocation.action = [&invocation, command] { return train(invocation.trailing, *command); };
  });
}

void add_agent(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("agent", kAgentSummary);
  command->prefix_command();
  command->set_help_flag("");  // flags may come in any order, so the command reads all of them
  command->formatter(std::make_shared<TrainUsage>("--join ADDRESS:PORT [--workers N]"));
  command->footer(R"(Flags:
  --join ADDRESS:PORT         Where `lockstep train --listen` began the run; a minute is waited for it
  -n, --workers N             Keep so many workers going on this host, and start them again when they are lost
  --SECTION.KEY VALUE         The same keys as the run was begun with
  -h, --help                  Print this help message and exit

The run file, its data and the folder of the run must be the same here, the secret too.)");
  command->callback([&invocation, command] {
    invocation.action = [&invocation, command] { return agent(invocation.trailing, *command); };
  });
}

}  // namespace lockstep::cli
