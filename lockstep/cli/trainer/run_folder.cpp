// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/trainer/run_folder.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include "lockstep/base/counted.h"
#include "lockstep/base/error.h"
#include "lockstep/base/host_memory.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/unix_time.h"
#include "lockstep/checkpoint/hugging_face/folder.h"
#include "lockstep/cli/errors.h"
#include "lockstep/cli/trainer/run_claim.h"
#include "lockstep/kernels/compute/arithmetic.h"
#include "lockstep/metrics/json_lines.h"
#include "lockstep/metrics/process_memory.h"
#include "lockstep/metrics/progress.h"
#include "lockstep/metrics/tensorboard.h"
#include "lockstep/plan/pipeline.h"
#include "lockstep/plan/step_memory.h"
#include "lockstep/spec/model_size.h"
#include "lockstep/spec/workload.h"
#include "lockstep/spec/write.h"
#include "lockstep/train/checkpoint_model.h"
#include "lockstep/train/model_folder.h"
#include "lockstep/train/resume.h"
#include "lockstep/train/run_tokenizer.h"
#include "lockstep/train/same_tokenizer.h"
#include "lockstep/train/settings.h"

namespace lockstep::cli {
namespace {

constexpr const char* kLoss = "loss";
constexpr const char* kValidationLoss = "validation/loss";
constexpr int kLossDigits = 4;

// Makes room for a new run. A model that was trained before stays until the new one takes its place.
void clear(const std::filesystem::path& folder, const spec::RunSpec& run) {
  std::filesystem::remove(folder / run_files::kMetrics);
  std::filesystem::remove_all(checkpoint_folder(run));
  std::filesystem::remove_all(train::kept_tokenizer(folder));
  std::filesystem::remove_all(train::trace_folder(run));
  metrics::remove_tensorboard_files(folder / run.metrics.save_tb_folder);
}

// Those that no disk was needed for.
std::int64_t page_faults() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

double mib(std::uint64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

// 0 when it took no time, as a checkpoint may say of a step that is told again.
double tokens_per_s(const train::StepReport& report) {
  return report.seconds > 0 ? static_cast<double>(report.tokens) / report.seconds : 0;
}

// Where the first worker spent a step: communication is what no computation hid. Checkpoints come between
// steps and have keys of their own.
void add_times(const train::PhaseTimes& times, metrics::Record& record) {
  for (const train::Phase phase : train::kPhases) {
    if (phase == train::Phase::checkpoint) continue;
    record.scalars.push_back({fmt::format("phase/{}_s", train::name_of(phase)), times[phase]});
  }
}

void require_fitting(const data::Tokenizer& tokenizer, const spec::RunSpec& run) {
  if (tokenizer.vocab_size() <= static_cast<std::uint64_t>(run.model.vocab_size)) return;
  throw UsageError(
      fmt::format("the tokenizer of this run has {} tokens, but model.vocab_size is {}: raise that, or let "
                  "data.tokenizer "
                  "name the one that the corpus was made with",
                  tokenizer.vocab_size(), run.model.vocab_size));
}

// Far from fitting: the kernel would end the workers without a word. What is tight may still be tried.
void require_memory(int local_workers, std::uint64_t needed) {
  const std::uint64_t all = read_host_memory().most();
  if (all == 0 || needed <= all + all / 4) return;
  throw UsageError(fmt::format(
      "{} on this host would need about {} of memory, but all there is are {}: choose a smaller model, "
      "--parallelism.recompute all, or share the model out over more hosts (docs/parallelism.md)",
      counted(local_workers, "worker"), metrics::format_memory(needed), metrics::format_memory(all)));
}

void add_speeds(const train::SpeedReport& report, metrics::Record& record) {
  record.scalars.push_back({"speed/slowest_rank", static_cast<double>(report.slowest.rank)});
  record.scalars.push_back({"speed/slowest_score", report.slowest.score});
  for (const train::Phase phase : train::kPhases) {
    record.scalars.push_back({fmt::format("speed/{}_s", train::name_of(phase)), report.mean[phase]});
  }
}

// "8 workers (2 data-parallel x 2 tensor-parallel x 2 stages of 1f1b)"
std::string workers_in_words(const spec::RunSpec& run, int workers, const spec::Workload& workload) {
  const spec::Parallelism& parallelism = run.parallelism;
  const std::string all = counted(workers, "worker");
  std::string axes;
  if (parallelism.tensor > 1) axes += fmt::format(" x {} tensor-parallel", parallelism.tensor);
  if (parallelism.pipeline > 1) {
    axes += fmt::format(" x {} stages of {}", parallelism.pipeline, parallelism.schedule);
  }
  return axes.empty() ? all : fmt::format("{} ({} data-parallel{})", all, workload.data_parallel, axes);
}

// Empty when the run resumes none.
std::string kept_beside_checkpoint(const spec::RunSpec& run) {
  const auto chosen = train::newest_checkpoint(run.checkpoint, checkpoint_folder(run));
  return chosen ? train::kept_tokenizer_beside(*chosen) : "";
}

// That are there at the same time: an old one is removed when a newer one is committed.
std::uint64_t most_checkpoints(const spec::RunSpec& run) {
  const spec::Checkpoint& checkpoint = run.checkpoint;
  if (!checkpoint.enabled) return 0;
  if (!spec::saves_on_the_way(run)) return 1;
  const bool only_by_steps = checkpoint.interval > 0 && checkpoint.interval_seconds == 0;
  const std::int64_t steps_between = only_by_steps ? checkpoint.interval : 1;
  const std::int64_t saves_before_last = (run.training.steps - 1) / steps_between;
  return 1 + static_cast<std::uint64_t>(std::min(checkpoint.keep_last, saves_before_last));
}

}  // namespace

RunFolder::RunFolder(const spec::RunSpec& run, int workers, bool goes_on)
    : run_(run),
      workers_(workers),
      folder_(run.job.dump_folder),
      lock_(folder_.path() / run_files::kLock),
      goes_on_(goes_on || resumes_itself(run)),
      tokenizer_(train::tokenizer_of(
          run, goes_on ? train::kept_tokenizer(run.job.dump_folder) : kept_beside_checkpoint(run))) {
  if (!goes_on) require_free(run);
  // One that is resumed, here or from another folder, is held to what its checkpoint says of its samples.
  if (!goes_on && !train::newest_checkpoint(run.checkpoint, checkpoint_folder(run))) {
    train::require_one_tokenizer(run, tokenizer_);
    train::require_tokenizer_of_first_values(run, tokenizer_);
  }
  if (!goes_on_ && tokenizer_.tokenizer) require_fitting(*tokenizer_.tokenizer, run);
  checkpoint::require_replaceable(model_folder());  // better than to find out after training
}

std::string RunFolder::model_folder() const {
  return (folder_.path() / run_files::kModel).string();
}

std::string RunFolder::tokenizer_digest() const {
  return train::digest_of(tokenizer_);
}

void RunFolder::open_sinks(std::int64_t step) {
  if (!sinks_.empty()) return;
  if (goes_on_) metrics::drop_records_after(folder_.path() / run_files::kMetrics, step);
  sinks_.push_back(std::make_unique<metrics::JsonLinesSink>(folder_.path() / run_files::kMetrics));
  if (run_.metrics.enable_tensorboard) {
    sinks_.push_back(
        std::make_unique<metrics::TensorBoardSink>(folder_.path() / run_.metrics.save_tb_folder));
  }
}

void RunFolder::resumed(const train::Resumed& from) {
  log_->say(fmt::format("resumed {} after step {}, loss {}", from.path, from.progress.step,
                        metrics::format_number(from.progress.loss, kLossDigits)));
  warn_about_arithmetic(from);
  open_sinks(from.progress.step - (from.is_told_again ? 1 : 0));
}

bool RunFolder::lacks(const train::Resumed& from, bool has_validation) const {
  return is_own_checkpoint(run_, from.path) &&
         !metrics::has_scalar(folder_.path() / run_files::kMetrics, from.progress.step,
                              has_validation ? kValidationLoss : kLoss);
}

void RunFolder::warn_about_arithmetic(const train::Resumed& from) {
  const kernels::Arithmetic& here = kernels::arithmetic_of(run_.training.dtype);
  if (from.arithmetic.empty() || has_digest_of(here, from.arithmetic)) return;
  log_->say(fmt::format(
      "warning: {} was computed with {}, and this host has {}: the run goes on, but its last bits "
      "are not those of a run that was never stopped",
      from.path, from.arithmetic, to_text(here)));
}

void RunFolder::healed(const train::Reached& from) {
  log_->say(fmt::format("{} went on after step {}", counted(workers_, "worker"), from.progress.step));
  open_sinks(from.progress.step - (from.last ? 1 : 0));
}

void RunFolder::begun(std::int64_t step) {
  if (goes_on_ && sinks_.empty()) {
    log_->say(
        "warning: workers were lost with what nobody else has, and there is no checkpoint: the run begins "
        "anew");
  }
  open_sinks(step);
}

void RunFolder::saved(const train::SaveReport& report) {
  if (!report.is_good) {
    since_last_step_.push_back({"checkpoint/failed", 1});
    log_->say(fmt::format("warning: no checkpoint of step {}: {}", report.step, report.reason));
    return;
  }
  since_last_step_.push_back({"checkpoint/seconds", report.seconds});
  since_last_step_.push_back({"checkpoint/stall_s", report.stall_seconds});
  log_->say(fmt::format("wrote {} in {:.2f} s, for which training waited {:.0f} ms", report.path,
                        report.seconds, report.stall_seconds * 1e3));
}

RunFolder::Needs RunFolder::predict(const Workers& workers) {
  const std::uint64_t here = metrics::process_memory().current_bytes;
  const auto predicted = [&](Rank rank) {
    const std::uint64_t mirrors =
        workers.mirror ? plan::mirror_memory(run_, workers_, rank, workers.host_of) : 0;
    return here + plan::step_memory(run_, workers_, rank, workers.host_of).total() + mirrors;
  };
  predicted_bytes_ = predicted(0);
  // Of those on other hosts one of each stage: a prediction proves a program, and there may be thousands.
  Needs needs;
  const Mesh mesh = plan::mesh_of(run_, workers_);
  for (int stage = 0; stage < mesh.size(Axis::pipeline); ++stage) {
    needs.largest = std::max(needs.largest, predicted(mesh.rank_of({.pipeline = stage})));
  }
  for (Rank rank = 0; rank < workers.on_this_host; ++rank) {
    const std::uint64_t needed = predicted(rank);
    needs.on_this_host += needed;
    needs.largest = std::max(needs.largest, needed);
  }
  return needs;
}

void RunFolder::begin(const Workers& workers) {
  gemm_peak_gflops_ = workers.gemm_peak_gflops;
  const Needs needs = predict(workers);
  // A run that has something to lose may try, with what its workers keep of the last generation counted in.
  if (!goes_on_) {
    require_memory(workers.on_this_host, needs.on_this_host);
    clear(folder_.path(), run_);
  }
  keep_tokenizer();
  const spec::Workload workload = spec::workload_of(run_, workers_);
  spec::RunSpec resolved = spec::settled(run_, workers_);
  resolved.job.overwrite = false;  // that was allowed once
  resolved.checkpoint.resume = "";
  write_atomically(folder_.path() / run_files::kResolved, spec::to_toml(resolved));
  log_.emplace(folder_.path() / "log.txt",
               goes_on_ ? metrics::OutputFile::Mode::append : metrics::OutputFile::Mode::replace);
  log_->say(
      fmt::format("{} parameters, {}, {}, {} tokens per step, about {} of memory for a worker; files in {}",
                  spec::parameter_count(run_.model), workers_in_words(run_, workers_, workload),
                  counted(workload.lanes, "lane"), workload.tokens_per_step,
                  metrics::format_memory(needs.largest), folder_.path().string()));
  warn_about_memory(workers.on_this_host, needs.on_this_host);
  if (!goes_on_) warn_about_disk();
  // Later, what was trained is saved first.
  if (!goes_on_ && log_->lost_output()) throw OutputError(*log_->lost_output());
}

void RunFolder::keep_tokenizer() {
  const std::string kept = train::kept_tokenizer(folder_.path());
  const bool has_some = tokenizer_.special || !tokenizer_.companions.empty();
  if (has_some && !checkpoint::has_kept_companions(kept)) checkpoint::keep_companions(kept, tokenizer_);
}

void RunFolder::warn_about_memory(int local_workers, std::uint64_t needed) {
  const std::uint64_t usable = read_host_memory().usable();
  if (needed <= usable) return;
  log_->say(fmt::format(
      "warning: {} on this host will need about {} of memory, of which {} can be had: use fewer of them, a "
      "smaller training.micro_batch_size, or --parallelism.recompute all",
      counted(local_workers, "worker"), metrics::format_memory(needed), metrics::format_memory(usable)));
}

// Better than to find out after training. What others write there meanwhile nobody knows.
void RunFolder::warn_about_disk() {
  std::error_code unknown;
  const std::uint64_t left = std::filesystem::space(folder_.path(), unknown).available;
  const auto parameters = static_cast<std::uint64_t>(spec::parameter_count(run_.model));
  const auto moments = static_cast<std::uint64_t>(train::weight_options(run_).moments);
  const std::uint64_t checkpoint = (1 + moments) * sizeof(float);
  const std::uint64_t needed =
      parameters * (size_of(run_.training.dtype) + most_checkpoints(run_) * checkpoint);
  if (unknown || needed <= left) return;
  log_->say(fmt::format(
      "warning: the disk of {} has {} left, and what the run writes there needs about {}, with {} at a time: "
      "make room, or choose another --job.dump_folder{}",
      folder_.path().string(), metrics::format_memory(left), metrics::format_memory(needed),
      counted(most_checkpoints(run_), "checkpoint"),
      most_checkpoints(run_) > 2 ? " or a smaller checkpoint.keep_last" : ""));
}

double RunFolder::mfu(const train::StepReport& report) const {
  const double flops = spec::flops_per_token(run_.model, run_.training.seq_len);
  return tokens_per_s(report) * flops / 1e9 / gemm_peak_gflops_;
}

void RunFolder::after_step(const train::StepReport& report) {
  const std::int64_t faults = page_faults();
  metrics::Record record = {.step = report.step,
                            .time_s = unix_time(),
                            .scalars = {{kLoss, report.loss},
                                        {"grad_norm", report.gradient_norm},
                                        {"lr", report.learning_rate},
                                        {"tokens_per_s", tokens_per_s(report)},
                                        {"step_s", report.seconds},
                                        {"mfu", mfu(report)},
                                        {"peak_memory_mib", mib(metrics::process_memory().peak_bytes)},
                                        {"predicted_memory_mib", mib(predicted_bytes_)},
                                        {"page_faults", static_cast<double>(faults - page_faults_)}}};
  page_faults_ = faults;
  if (report.times) add_times(*report.times, record);
  if (report.loss_scale != 1) record.scalars.push_back({"loss_scale", report.loss_scale});
  if (!report.updated) record.scalars.push_back({"skipped", 1});
  if (report.validation_loss) record.scalars.push_back({kValidationLoss, *report.validation_loss});
  if (report.speed) add_speeds(*report.speed, record);
  for (metrics::Scalar& scalar : std::exchange(since_last_step_, {})) {
    record.scalars.push_back(std::move(scalar));
  }
  for (const auto& sink : sinks_) sink->write(record);
  if (report.step > 1) {
    seconds_ += report.seconds;
    ++timed_steps_;
  }
  show(report);
}

void RunFolder::show(const train::StepReport& report) {
  metrics::Progress progress = {.step = report.step,
                                .total_steps = run_.training.steps,
                                .loss = report.loss,
                                .grad_norm = report.gradient_norm,
                                .learning_rate = report.learning_rate,
                                .tokens_per_s = tokens_per_s(report),
                                .mfu = mfu(report),
                                .memory_bytes = metrics::process_memory().current_bytes,
                                .seconds_left = std::nullopt};
  if (timed_steps_ > 0) {
    progress.seconds_left =
        seconds_ / static_cast<double>(timed_steps_) * static_cast<double>(run_.training.steps - report.step);
  }
  log_->show(progress, report.step % run_.metrics.log_freq == 0 || report.step == run_.training.steps ||
                           report.validation_loss || !report.updated || !report.lanes.empty());
  if (!report.updated) {
    // Which one it was nobody knows any more when the step is told again.
    log_->say(fmt::format("step {} skipped: {} is not finite", report.step,
                          report.not_finite.empty() ? "a gradient" : "the gradient of " + report.not_finite));
  }
  if (report.validation_loss) {
    log_->say(fmt::format("validation loss {} after step {}",
                          metrics::format_number(*report.validation_loss, kLossDigits), report.step));
  }
  if (report.speed && report.speed->is_named) {
    log_->say(fmt::format("warning: {}{}", to_text(*report.speed),
                          report.speed->is_evicted ? ": it has to leave" : ""));
  }
  if (!report.lanes.empty()) {
    log_->say(fmt::format("lanes of the workers from now on: {}", fmt::join(report.lanes, ", ")));
  }
}

void RunFolder::save(const model::FlatLayout& whole, const at::Tensor& values) {
  train::save_model(model_folder(), run_.model, whole, values, tokenizer_);
  tell_model();
}

void RunFolder::save(const std::string& checkpoint) {
  train::export_model(checkpoint, model_folder(), {});
  tell_model();
}

void RunFolder::tell_model() {
  const std::string path = model_folder();
  log_->say(run_.model.name == spec::ModelFamily::mlp
                ? fmt::format("wrote {}: --init-from {} begins a run with it", path, path)
                : fmt::format("wrote {}: `lockstep generate {} --prompt TEXT` lets it write", path, path));
}

void RunFolder::finish(const train::RunSummary& summary) {
  if (summary.stopped && summary.steps == 0) {
    log_->say("stopped before the first step; the same command starts the run again");
    return;
  }
  // A run that is resumed may be further than it is asked to go.
  const std::string steps =
      summary.steps > run_.training.steps
          ? fmt::format("{} steps, which is more than training.steps = {}", summary.steps,
                        run_.training.steps)
          : fmt::format("{} of {}", summary.steps, counted(run_.training.steps, "step"));
  log_->say(fmt::format(
      "{} after {}, loss {}{}{}", summary.stopped ? "stopped" : "done", steps,
      metrics::format_number(summary.loss, kLossDigits),
      summary.bad_steps > 0 ? ", " + counted(summary.bad_steps, "step") + " skipped" : "",
      summary.stopped && run_.checkpoint.enabled ? "; the same command with --resume auto goes on" : ""));
  if (!summary.trace.empty()) {
    log_->say(fmt::format("wrote {}: ui.perfetto.dev shows it", summary.trace));
  }
}

}  // namespace lockstep::cli
