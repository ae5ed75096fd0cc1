// SPDX-License-Identifier: Apache-2.0
//
// Who may begin a run in which folder.
#pragma once

#include <filesystem>
#include <string>

#include "lockstep/base/file_lock.h"
#include "lockstep/cli/trainer/made_folder.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::cli {

// What lies in the folder of a run.
namespace run_files {
inline constexpr const char* kResolved = "resolved.toml";
inline constexpr const char* kMetrics = "metrics.jsonl";
inline constexpr const char* kModel = "model";
inline constexpr const char* kLock = "lock";
inline constexpr const char* kLauncherLock = "launcher.lock";
}  // namespace run_files

// Of a run: where its checkpoints are.
std::string checkpoint_folder(const spec::RunSpec& run);

// Whether a path lies in there.
bool is_own_checkpoint(const spec::RunSpec& run, const std::filesystem::path& path);

// A folder has a run that got past all refusals, now or earlier.
bool has_begun(const std::filesystem::path& folder);

// What the run resumes is one of its own checkpoints.
bool resumes_itself(const spec::RunSpec& run);

// UsageError when the folder holds a run that is neither resumed nor allowed to be replaced (job.overwrite),
// or that has newer checkpoints than the one to go on from: those of two courses must not mix; or when a new
// run is to begin with one of the checkpoints that it would replace.
void require_free(const spec::RunSpec& run);

// For whoever begins a run, a launcher or a rank without one: keeps others who begin one away from its
// folder, also while none of the workers has it. A run that is refused leaves no folder behind.
class LauncherLock {
 public:
  // InUseError when another one has the folder, or when a run that this one would replace is under way
  // without one; UsageError when the folder cannot be written.
  explicit LauncherLock(const spec::RunSpec& run);

 private:
  MadeFolder folder_;
  FileLock lock_;
};

}  // namespace lockstep::cli
