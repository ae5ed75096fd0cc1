// SPDX-License-Identifier: Apache-2.0
#include "lockstep/cli/trainer/run_claim.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/store/store.h"
#include "lockstep/train/checkpoint_model.h"
#include "lockstep/train/first_values.h"
#include "lockstep/train/resume.h"

namespace lockstep::cli {
namespace {

// Metrics of one; one that came to no step is nothing to keep.
bool holds_a_run(const std::filesystem::path& folder) {
  std::error_code no_file;
  const std::uintmax_t bytes = std::filesystem::file_size(folder / run_files::kMetrics, no_file);
  return !no_file && bytes > 0;
}

void require_newest(const spec::RunSpec& run) {
  const std::string own = checkpoint_folder(run);
  const std::vector<checkpoint::Listed> all = checkpoint::CheckpointStore(own).committed();
  const auto chosen = train::newest_checkpoint(run.checkpoint, own);
  const auto is_chosen = [&](const checkpoint::Listed& listed) {
    return chosen && std::filesystem::equivalent(listed.path, *chosen);
  };
  const auto found = std::ranges::find_if(all, is_chosen);
  if (found == all.end() || found->step == all.front().step) return;
  throw UsageError(
      fmt::format("{} is older than step {} of the same run: to go on from it, choose another "
                  "--job.dump_folder, or remove the newer checkpoints from {}",
                  found->path, all.front().step, own));
}

// A new run reads them after clear().
void require_first_values_stay(const spec::RunSpec& run) {
  const std::string own = checkpoint_folder(run);
  const std::string& path = run.checkpoint.initial_load_path;
  if (path.empty() || train::newest_checkpoint(run.checkpoint, own)) return;
  const std::string folder = train::first_values_folder(path);
  if (!is_own_checkpoint(run, folder)) return;
  throw UsageError(
      fmt::format("{} is to begin the run, which would first remove it with all of {}: choose another "
                  "--job.dump_folder, or --init-from the folder model/ of the run that is there",
                  folder, own));
}

}  // namespace

std::string checkpoint_folder(const spec::RunSpec& run) {
  return (std::filesystem::path(run.job.dump_folder) / "checkpoints").string();
}

bool is_own_checkpoint(const spec::RunSpec& run, const std::filesystem::path& path) {
  const auto outer = std::filesystem::weakly_canonical(checkpoint_folder(run));
  const auto inner = std::filesystem::weakly_canonical(path);
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

bool has_begun(const std::filesystem::path& folder) {
  return std::filesystem::exists(folder / run_files::kResolved);
}

bool resumes_itself(const spec::RunSpec& run) {
  const std::string own = checkpoint_folder(run);
  const auto chosen = train::newest_checkpoint(run.checkpoint, own);
  return chosen && std::filesystem::equivalent(std::filesystem::canonical(*chosen).parent_path(), own);
}

void require_free(const spec::RunSpec& run) {
  require_newest(run);
  require_first_values_stay(run);
  const bool is_auto = run.checkpoint.resume == "auto";
  if (run.job.overwrite || !holds_a_run(run.job.dump_folder) || resumes_itself(run)) return;
  // One that was lost before its first checkpoint begins anew; one that has come to its end is not for that.
  const std::filesystem::path folder = run.job.dump_folder;
  if (is_auto && !std::filesystem::exists(folder / run_files::kModel)) return;
  if (is_auto) {
    throw UsageError(
        fmt::format("{} holds a run that has ended, and no checkpoint to go on from: choose another "
                    "--job.dump_folder, or replace it with --job.overwrite true",
                    run.job.dump_folder));
  }
  throw UsageError(
      fmt::format("{} holds a run already: go on with it by --resume auto, choose another "
                  "--job.dump_folder, or replace it with --job.overwrite true",
                  run.job.dump_folder));
}

LauncherLock::LauncherLock(const spec::RunSpec& run)
    : folder_(run.job.dump_folder), lock_(folder_.path() / run_files::kLauncherLock) {
  // A run that goes on may have workers on other hosts, one of which still has the folder.
  if (run.checkpoint.resume != "auto") {
    const FileLock nobody_trains(folder_.path() / run_files::kLock);
  }
}

}  // namespace lockstep::cli
