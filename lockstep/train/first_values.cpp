// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/first_values.h"

#include <filesystem>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/store/continuation.h"
#include "lockstep/checkpoint/store/store.h"
#include "lockstep/nn/tensor_view.h"
#include "lockstep/parallel/tensor/shards.h"
#include "lockstep/train/agreement.h"
#include "lockstep/train/model_folder.h"
#include "lockstep/train/resume.h"

namespace lockstep::train {
namespace {

// A folder of weights, or one with such a folder in it, which ModelFolder names.
bool has_model(const std::filesystem::path& folder) {
  return std::filesystem::exists(folder / "config.json") ||
         std::filesystem::exists(folder / "model" / "config.json");
}

// Into each lane that has something of it.
void assign(const Holding& holding, Weights& weights, std::size_t in_whole, std::span<const float> values) {
  const std::string& name = holding.whole.specs()[in_whole].name;
  const at::Tensor whole =
      at::from_blob(const_cast<float*>(values.data()), {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < holding.layout.specs().size(); ++i) {
    if (holding.layout.specs()[i].name != name) continue;
    const at::Tensor part = at::empty({holding.layout.places()[i].count}, at::kFloat);
    parallel::take_part(holding.shard(i), whole, part);
    weights.assign(i, 0, nn::floats_of(part));
  }
}

}  // namespace

// A run has both; its folder model/ is no part of it.
std::string first_values_folder(const std::string& path) {
  if (checkpoint::holds_checkpoints(path)) return checkpoint::find_checkpoint(path);
  if (has_model(path)) return path;
  throw UsageError(fmt::format(
      "{}, whose weights the run is to begin with (--init-from), {}: name the folder of a run, a checkpoint "
      "(with manifest.json) or a Hugging Face folder (with config.json)",
      path, std::filesystem::exists(path) ? "has none" : "is not there"));
}

FirstValues::FirstValues(const std::string& path, const spec::Model& model)
    : path_(first_values_folder(path)), model_(model) {
  if (checkpoint::holds_checkpoints(path)) {
    const checkpoint::Manifest& manifest = checkpoint_.emplace(path_).manifest();
    require_same_model(checkpoint::saved_run(manifest, path_).model, path_ + "/manifest.json", model);
    return;
  }
  folder_.emplace(path_);
  require_same_model(folder_->config().model, path_ + "/config.json", model);
}

void FirstValues::load(const Holding& holding, Weights& weights) {
  if (folder_) return load_folder(holding, weights);
  load_checkpoint(holding, weights);
}

void FirstValues::load_checkpoint(const Holding& holding, Weights& weights) {
  constexpr int kAll = 0;  // every rank has read the manifest of the whole
  require_same_first_values(checkpoint_->manifest_hash(), kAll, path_, holding.groups.world);
  together(holding.groups.world, [&] { train::load_values(*checkpoint_, holding, weights); });
}

void FirstValues::load_folder(const Holding& holding, Weights& weights) const {
  Hasher hasher;
  together(holding.groups.world, [&] {
    train::load_values(*folder_, model_, holding.whole, holding.layout,
                       [&](std::size_t parameter, std::span<const float> values) {
                         assign(holding, weights, parameter, values);
                         hasher.add(std::as_bytes(values));
                       });
  });
  require_same_first_values(hasher.value(), holding.groups.pipeline.rank(), path_, holding.groups.world);
}

}  // namespace lockstep::train
