// SPDX-License-Identifier: Apache-2.0
#include "lockstep/checkpoint/store/continuation.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/spec/key.h"
#include "lockstep/spec/load.h"
#include "lockstep/spec/write.h"

namespace lockstep::checkpoint {
namespace {

constexpr auto kFreeSections = std::to_array<std::string_view>(
    {"job", "parallelism", "zero", "checkpoint", "elastic", "validation", "metrics"});
constexpr auto kFreeKeys =
    std::to_array<std::string_view>({"model.preset", "data.validation", "data.tokenizer", "training.steps",
                                     "training.threads", "comm.train_timeout_seconds"});
constexpr auto kBoundKeys =
    std::to_array<std::string_view>({"parallelism.lanes", "parallelism.tensor_lanes"});

// With one order of addition it does not matter who adds.
bool is_free(const spec::Key& key, const spec::RunSpec& run) {
  const std::string name = key.full_name();
  if (name == "comm.all_reduce") return run.comm.exact;
  // Older versions let keys without effect be set, and to go on nobody could give them as they were.
  if (!spec::has_effect(key, run)) return true;
  if (std::ranges::find(kBoundKeys, name) != kBoundKeys.end()) return false;
  return std::ranges::find(kFreeSections, key.section) != kFreeSections.end() ||
         std::ranges::find(kFreeKeys, name) != kFreeKeys.end();
}

// Files may move; what they hold is compared by their samples.
spec::RunSpec without_paths(spec::RunSpec run) {
  for (spec::Corpus& corpus : run.data.train) corpus.path = "corpus";
  return run;
}

}  // namespace

spec::RunSpec saved_run(const Manifest& manifest, const std::string& path) {
  try {
    return spec::parse_saved_run(manifest.configuration, path + "/manifest.json");
  } catch (const UsageError& error) {
    throw DataError(
        fmt::format("{}: the configuration that it was saved with cannot be read: {}", path, error.what()));
  }
}

spec::RunSpec continued(spec::RunSpec run, const Manifest& manifest, const std::string& path) {
  const spec::RunSpec saved = saved_run(manifest, path);
  if (run.parallelism.lanes == 0) run.parallelism.lanes = saved.parallelism.lanes;
  if (run.parallelism.tensor_lanes == 0) run.parallelism.tensor_lanes = saved.parallelism.tensor_lanes;
  if (run.training.global_batch_size == 0) run.training.global_batch_size = saved.training.global_batch_size;
  return run;
}

void require_same_training(const spec::RunSpec& run, const Manifest& manifest, const std::string& path) {
  const spec::RunSpec ours = without_paths(continued(run, manifest, path));
  const spec::RunSpec saved = without_paths(saved_run(manifest, path));
  for (const spec::Key& key : spec::all_keys()) {
    const spec::Value mine = key.get(ours);
    const spec::Value theirs = key.get(saved);
    if (is_free(key, ours) || mine == theirs) continue;
    throw UsageError(fmt::format(
        "{0} is {1}, but {2} was trained with {3}: to go on, give it as it was; to begin a new run with its "
        "weights, use --init-from {2} instead of --resume",
        key.full_name(), spec::toml_of(mine), path, spec::toml_of(theirs)));
  }
}

}  // namespace lockstep::checkpoint
