// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/chaos/run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include <fmt/format.h>

#include "lockstep/base/counted.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file_lock.h"
#include "lockstep/base/log.h"
#include "lockstep/base/output_file.h"
#include "lockstep/checkpoint/store/reader.h"
#include "lockstep/checkpoint/store/store.h"
#include "lockstep/cli/chaos/disturb.h"
#include "lockstep/cli/chaos/lockstep_job.h"
#include "lockstep/cli/chaos/options.h"
#include "lockstep/cli/chaos/report.h"
#include "lockstep/cli/chaos/torchrun_job.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/cli/output.h"
#include "lockstep/spec/load.h"
#include "lockstep/spec/write.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kCalibration = 5;  // seconds in which the time of a step is measured
// A run must not end before its last fault, also when it is faster than measured: it has steps for a tenth
// more than the time, and if need be its faults come when half of that tenth is left.
constexpr double kMargin = 1.1;
constexpr double kHalfMargin = 1.05;
constexpr const char* kUndisturbed = "undisturbed";
constexpr const char* kDisturbed = "disturbed";
constexpr const char* kTorchrun = "torchrun";
constexpr const char* kMeasured = "measured";

const std::string& made(const std::string& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) throw UsageError(fmt::format("cannot make the folder {}: {}", folder, failure.message()));
  return folder;
}

double mean_step(std::span<const StepRecord> steps) {
  if (steps.size() < 2) throw UsageError("the undisturbed run has no two steps, from which a time follows");
  return (steps.back().time_s - steps.front().time_s) / static_cast<double>(steps.size() - 1);
}

class Chaos {
 public:
  explicit Chaos(ChaosOptions options)
      : options_(std::move(options)), lock_(fs::path(made(options_.output)) / "chaos.lock") {
    make_room();
    spec::RunSpec& run = options_.run;
    run.job.overwrite = false;
    // Those who are to survive so many faults are no flapping workers.
    run.elastic.max_restarts = std::max<std::int64_t>(run.elastic.max_restarts, 1'000'000);
    if (has_resizes(options_.faults)) run.elastic.max_workers = options_.faults.workers;
  }

  ChaosReport run() {
    if (options_.against_torchrun) TorchrunJob::require_torch(torchrun_options());
    set_steps();
    const std::string reference = options_.reference.value_or(file(kUndisturbed));
    if (!options_.reference) train_undisturbed();
    const std::vector<StepRecord> undisturbed = read_steps(fs::path(reference) / "metrics.jsonl");
    std::vector<Fault> plan = plan_faults(options_.faults);
    const auto steps = static_cast<double>(options_.run.training.steps);
    // A reference that was made for a shorter time has no steps for all of them.
    if (steps * mean_step(undisturbed) >= options_.faults.duration_s) {
      bound_by_steps(plan, options_.run.training.steps, kHalfMargin * options_.faults.duration_s);
    }
    ChaosReport report = {.folder = options_.output,
                          .workers = options_.faults.workers,
                          .steps = options_.run.training.steps,
                          .seed = options_.faults.seed,
                          .planned = plan.size(),
                          .undisturbed_step_s = mean_step(undisturbed),
                          .ours = {},
                          .pace = 0,
                          .losses = {},
                          .digest = {},
                          .undisturbed_digest = digest_of(reference),
                          .torchrun = {}};
    train_disturbed(plan, undisturbed, report);
    report.digest = digest_of(file(kDisturbed));
    if (options_.against_torchrun) report.torchrun = torchrun_under(report.ours.faults);
    return report;
  }

 private:
  std::string file(const std::string& name) const { return (fs::path(options_.output) / name).string(); }

  // What an earlier time has left is kept unless the run file allows to replace it.
  void make_room() {
    for (const char* name : {kUndisturbed, kDisturbed, kTorchrun, kMeasured}) {
      const bool may_go = options_.run.job.overwrite || name == std::string_view(kMeasured);
      if (fs::exists(file(name)) && !may_go) {
        throw UsageError(
            fmt::format("{} holds runs of an earlier time: choose another --output, or replace them with "
                        "--job.overwrite true",
                        options_.output));
      }
      fs::remove_all(file(name));
      fs::remove(file(name) + ".log");
    }
  }

  // As many as take the time that was asked for.
  void set_steps() {
    if (options_.reference) {
      options_.run.training.steps =
          spec::load_saved_run(fs::path(*options_.reference) / "resolved.toml").training.steps;
    } else {
      const double step_s = measured_step();
      options_.run.training.steps = std::max<std::int64_t>(
          2, static_cast<std::int64_t>(std::ceil(kMargin * options_.faults.duration_s / step_s)));
    }
    write_atomically(file("run.toml"), spec::to_toml(options_.run));
  }

  double measured_step() {
    spec::RunSpec endless = options_.run;
    endless.training.steps = std::numeric_limits<std::int32_t>::max();
    endless.checkpoint = {.enabled = false, .initial_load_path = options_.run.checkpoint.initial_load_path};
    write_atomically(file("measured.toml"), spec::to_toml(endless));
    LockstepJob job(
        {.file = file("measured.toml"), .folder = file(kMeasured), .workers = options_.faults.workers});
    disturb(job, {}, std::min(kCalibration, options_.faults.duration_s));
    if (job.has_ended()) job.require_success("the run by which the time of a step is measured");
    // A step may take longer than that.
    const auto steps = read_steps(job.steps_file());
    return steps.size() < 2 ? steps.front().step_s : mean_step(steps);
  }

  void train_undisturbed() {
    log::info(fmt::format("trains {} steps undisturbed", options_.run.training.steps));
    LockstepJob job(job_of(kUndisturbed));
    disturb(job, {});
    job.require_success("the undisturbed run");
  }

  // Fills in what the disturbed run came to, but for its digest.
  void train_disturbed(std::span<const Fault> plan, std::span<const StepRecord> undisturbed,
                       ChaosReport& report) {
    log::info("trains the same with " + counted(plan.size(), "fault"));
    LockstepJob::Options job_options = job_of(kDisturbed);
    job_options.has_resizes = has_resizes(options_.faults);
    LockstepJob job(job_options);
    const std::vector<InjectedFault> faults = disturb(job, plan);
    job.require_success("the disturbed run");
    const std::vector<StepRecord> steps = read_steps(job.steps_file());
    report.ours = figures_of(faults, steps, read_generations(job.generations_file()), true);
    const std::int64_t last = report.ours.effective.steps;
    report.pace = time_until(undisturbed, last).value_or(0) / time_until(steps, last).value_or(1);
    report.losses = compare_losses(steps, undisturbed);
  }

  // The kills that ours has had, at the same times; for other faults torchrun has no answer.
  JobFigures torchrun_under(std::span<const InjectedFault> ours) {
    std::vector<Fault> plan;
    for (const InjectedFault& injected : ours) {
      if (injected.fault.kind != FaultKind::kill) continue;
      plan.push_back(injected.fault);
      plan.back().at_s = injected.after_s;
      plan.back().by_step = 0;
    }
    log::info(fmt::format("trains under torchrun with {} kills", plan.size()));
    const double time_s = options_.faults.duration_s;
    TorchrunJob::Options job_options = torchrun_options();
    job_options.mtbf_s = time_s / static_cast<double>(std::max<std::size_t>(plan.size(), 1));
    TorchrunJob job(job_options);
    const std::vector<InjectedFault> faults = disturb(job, plan, time_s);
    if (job.has_ended()) {
      job.require_success();
      throw UsageError("torchrun has ended before its time");
    }
    return figures_of(faults, read_steps(job.steps_file()),
                      with_losses(faults, read_generations(job.starts_file())), false);
  }

  // It does not tell when it notices a loss; what a kill interrupts is lost from then on.
  static std::vector<GenerationRecord> with_losses(std::span<const InjectedFault> faults,
                                                   std::vector<GenerationRecord> starts) {
    for (const InjectedFault& injected : faults) starts.push_back({injected.time_s, "lost", injected.step});
    std::ranges::stable_sort(starts, {}, &GenerationRecord::time_s);
    return starts;
  }

  JobFigures figures_of(const std::vector<InjectedFault>& faults, std::span<const StepRecord> steps,
                        std::span<const GenerationRecord> generations, bool has_ended) const {
    const auto effective = effective_time(steps, options_.faults.duration_s, has_ended);
    if (!effective) throw UsageError("the run has trained no step");
    return {.faults = faults,
            .outcomes = outcomes_of(faults, generations),
            .repeats = repeats_of(faults, generations),
            .effective = *effective};
  }

  TorchrunJob::Options torchrun_options() const {
    return {.run = options_.run,
            .folder = file(kTorchrun),
            .workers = options_.faults.workers,
            .mtbf_s = options_.faults.mtbf_s};
  }

  LockstepJob::Options job_of(const std::string& name) const {
    return {.file = file("run.toml"),
            .folder = file(name),
            .workers = options_.faults.workers,
            .has_resizes = false};
  }

  std::string digest_of(const std::string& folder) const {
    checkpoint::Checkpoint last(checkpoint::find_checkpoint(folder));
    if (last.manifest().progress.step != options_.run.training.steps) {
      throw UsageError(fmt::format("{} is the checkpoint of step {}, but {} steps were to be trained",
                                   last.path(), last.manifest().progress.step, options_.run.training.steps));
    }
    return to_text(checkpoint::logical_hash(last));
  }

  ChaosOptions options_;
  FileLock lock_;
};

}  // namespace

int run_chaos(const std::vector<std::string>& arguments, std::ostream& out) {
  std::string help;
  const auto options = parse_chaos_options(arguments, help);
  if (!options) {
    print(out, help);
    return kDone;
  }
  const ChaosReport report = Chaos(*options).run();
  const std::string json = chaos_json(report);
  write_atomically((fs::path(report.folder) / "report.json").string(), json);
  print(out, options->json ? json : chaos_text(report));
  return report.is_equal() ? kDone : kDiffers;
}

}  // namespace lockstep::cli
