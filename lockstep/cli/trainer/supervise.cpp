// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/trainer/supervise.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <span>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/counted.h"
#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/cli/errors.h"
#include "lockstep/cli/exit_codes.h"
#include "lockstep/cli/trainer/run_claim.h"
#include "lockstep/cli/workers.h"
#include "lockstep/elastic/supervisor.h"
#include "lockstep/kernels/compute/arithmetic.h"
#include "lockstep/rendezvous/environment.h"
#include "lockstep/rendezvous/launcher.h"
#include "lockstep/spec/load.h"
#include "lockstep/spec/workload.h"
#include "lockstep/spec/write.h"

namespace lockstep::cli {
namespace {

// Runs that listen have one name: a port has one run, and workers compare what they run.
constexpr const char* kRunName = "train";

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::duration<double>(seconds));
}

// A failure of one worker ends all soon; after a signal, and among elastic ones after a mistake of another,
// they may finish their step and save it.
std::chrono::milliseconds grace_of(const spec::RunSpec& run) {
  return milliseconds_of(run.elastic.grace_seconds);
}

constexpr std::size_t kFewestKeys = 5;  // that settled_keys() gives
constexpr std::size_t kDigests = 2;     // of the run, and of what the processor makes of it

// What a run leaves to the number of its workers must not change with that.
std::vector<std::string> settled_keys(const spec::RunSpec& run, int workers) {
  const spec::RunSpec settled = spec::settled(run, workers);
  const spec::Parallelism& parallelism = settled.parallelism;
  std::vector<std::string> keys = {
      fmt::format("--parallelism.tensor={}", parallelism.tensor),
      fmt::format("--parallelism.pipeline={}", parallelism.pipeline),
      fmt::format("--parallelism.lanes={}", parallelism.lanes),
      fmt::format("--parallelism.tensor_lanes={}", parallelism.tensor_lanes),
      fmt::format("--training.global_batch_size={}", settled.training.global_batch_size)};
  if (parallelism.pipeline == 1) {
    for (std::string& flag : spec::flags_without_pipeline()) keys.push_back(std::move(flag));
  }
  return keys;
}

std::vector<std::string> words_of(const WorkerCommand& command, const std::vector<std::string>& more) {
  std::vector<std::string> words = {std::filesystem::read_symlink("/proc/self/exe").string(), "train",
                                    command.file};
  words.insert(words.end(), command.key_flags.begin(), command.key_flags.end());
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

elastic::WorkerOptions worker_options(const spec::RunSpec& run, const WorkerCommand& command,
                                      const std::vector<std::string>& more) {
  elastic::WorkerOptions options;
  options.command = words_of(command, more);
  options.environment = rendezvous::process_environment();
  options.workers = command.workers;
  options.restarts = {.max_restarts = static_cast<std::size_t>(run.elastic.max_restarts),
                      .window = std::chrono::seconds(run.elastic.window_seconds)};
  options.grace_to_finish = grace_of(run);
  return options;
}

// What all workers of a run must have the same, in few bytes.
std::string digest_of(const spec::RunSpec& run) {
  const std::string text = spec::to_toml(spec::common_to_workers(run));
  return to_text(hash_of(std::as_bytes(std::span(text))));
}

// Which processors may compute lanes of the run: any when it does without the same bits.
std::string arithmetic_digest(const spec::RunSpec& run) {
  return run.comm.exact ? to_text(kernels::arithmetic_of(run.training.dtype).digest) : "any";
}

// For agents: the keys that the number of workers has settled, and what the run with them is.
std::string brief_of(const spec::RunSpec& run, int workers) {
  return fmt::format("{} {} {}", fmt::join(settled_keys(run, workers), " "),
                     digest_of(spec::settled(run, workers)), arithmetic_digest(run));
}

// The keys, when the run is the same here, and would have the same bits.
std::vector<std::string> keys_of(const std::string& brief, const WorkerCommand& command) {
  std::istringstream in(brief);
  std::vector<std::string> words{std::istream_iterator<std::string>(in), {}};
  if (words.size() < kFewestKeys + kDigests)
    throw UsageError("the coordinator is of another version of lockstep");
  const std::string arithmetic = std::move(words.back());
  words.pop_back();
  const std::string digest = std::move(words.back());
  words.pop_back();
  std::vector<std::string> flags = command.key_flags;
  flags.insert(flags.end(), words.begin(), words.end());
  const spec::RunSpec run = spec::load_run(command.file, flags);
  if (digest_of(run) != digest) {
    throw UsageError(
        fmt::format("{} is not the run of the coordinator: give both the same run file and the same flags",
                    command.file));
  }
  if (arithmetic_digest(run) != arithmetic) {
    throw UsageError(
        fmt::format("this host computes with {}, which gives other last bits than the coordinator's: use "
                    "processors of one kind, or begin a run that does without the same bits on any layout "
                    "with --comm.exact false",
                    kernels::arithmetic_of(run.training.dtype).name));
  }
  return words;
}

int exit_code_of(const elastic::SupervisorResult& result) {
  if (result.finished || result.exit_code == kInterrupted) {
    if (!result.finished && result.interrupted_by == 0) throw CommError(result.reason);
    return result.exit_code;
  }
  // Workers that made a mistake have said so. When it is ours, who and where helps to find it.
  const bool is_told = result.exit_code < kSignalBase && result.exit_code != kInternal;
  throw WorkerFailed(result.exit_code, is_told ? "" : result.reason);
}

// Nobody else could say so.
[[noreturn]] void end_before_begin(const spec::RunSpec& run, int signal) {
  const Interrupted interrupted(
      signal, "the run was stopped before its first step; the same command starts it again");
  if (!run.checkpoint.enabled) throw interrupted;
  throw WorkerFailed(kInterrupted, interrupted.what());
}

void require_enough(const spec::RunSpec& run, int workers) {
  if (run.elastic.max_workers > 0 || run.elastic.min_workers <= workers) return;
  throw UsageError(
      fmt::format("elastic.min_workers is {}, but there are at most {}: lower it, or raise --workers",
                  run.elastic.min_workers, counted(workers, "worker")));
}

}  // namespace

int supervise(const spec::RunSpec& run, const WorkerCommand& command,
              const std::optional<transport::Address>& listen) {
  require_enough(run, command.workers);
  const LauncherLock lock(run);
  require_free(run);
  const std::filesystem::path log = std::filesystem::path(run.job.dump_folder) / "decisions.log";
  std::error_code ignored;
  const std::filesystem::path history = std::filesystem::path(run.job.dump_folder) / "generations.jsonl";
  const bool is_auto = run.checkpoint.resume == "auto";
  if (run.checkpoint.resume.empty()) std::filesystem::remove(log, ignored);
  if (!is_auto && !resumes_itself(run)) std::filesystem::remove(history, ignored);

  elastic::SupervisorOptions options;
  options.workers = worker_options(run, command, settled_keys(run, command.workers));
  options.multiple = static_cast<int>(spec::workers_of_replica(run.parallelism, command.workers));
  options.pipeline = static_cast<int>(run.parallelism.pipeline);
  options.last_step = run.training.steps;
  options.min_workers = std::max(static_cast<int>(run.elastic.min_workers), options.multiple);
  options.max_workers = static_cast<int>(run.elastic.max_workers);
  options.beat_timeout = milliseconds_of(run.elastic.beat_timeout_seconds);
  options.stall_timeout = milliseconds_of(run.elastic.stall_timeout_seconds);
  options.wait_timeout = options.stall_timeout + std::chrono::seconds(run.comm.train_timeout_seconds);
  options.join_timeout = milliseconds_of(run.elastic.join_timeout_seconds);
  options.can_save = run.checkpoint.enabled;
  options.log_path = log.string();
  options.goes_on = is_auto;
  options.history_path = history.string();
  options.listen = listen;
  if (listen) {
    options.run = kRunName;
    options.brief = brief_of(run, command.workers);
  }
  const elastic::SupervisorResult result = elastic::supervise(options);
  const bool is_refused = result.exit_code == kBadUsage || result.exit_code == kBadData;
  const bool is_early = result.interrupted_by != 0 && result.exit_code == kInterrupted && !result.has_begun;
  if ((is_refused || is_early) && !has_begun(run.job.dump_folder)) {  // no decision is of any use
    std::filesystem::remove(log, ignored);
    std::filesystem::remove(history, ignored);
  }
  if (is_early) end_before_begin(run, result.interrupted_by);
  return exit_code_of(result);
}

int launch_once(const spec::RunSpec& run, const WorkerCommand& command) {
  rendezvous::LaunchOptions options;
  options.command = words_of(command, {});
  options.workers = command.workers;
  options.environment = rendezvous::process_environment();
  options.grace_after_signal = grace_of(run);
  const rendezvous::LaunchResult result = rendezvous::launch(options);
  if (result.all_succeeded) return kDone;  // a signal may have come too late
  if (result.interrupted_by != 0 && result.exit_code() == kInterrupted) return kInterrupted;
  require_success(result);
  return kDone;
}

int tend(const spec::RunSpec& run, const WorkerCommand& command, const transport::Address& coordinator) {
  elastic::AgentOptions options;
  options.workers = worker_options(run, command, {});
  options.coordinator = coordinator;
  options.run = kRunName;
  options.more_words = [&command](const std::string& brief) { return keys_of(brief, command); };
  return exit_code_of(elastic::tend(options));
}

}  // namespace lockstep::cli
