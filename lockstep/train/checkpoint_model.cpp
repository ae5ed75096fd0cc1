// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/checkpoint_model.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/checkpoint/store/continuation.h"
#include "lockstep/checkpoint/store/reader.h"
#include "lockstep/checkpoint/store/shard_writer.h"
#include "lockstep/checkpoint/store/store.h"
#include "lockstep/nn/tensor_view.h"
#include "lockstep/spec/write.h"
#include "lockstep/train/model_folder.h"
#include "lockstep/train/model_of.h"
#include "lockstep/train/run_tokenizer.h"
#include "lockstep/train/state_names.h"
#include "lockstep/train/working_values.h"

namespace lockstep::train {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

// Rounded as the run has rounded them.
at::Tensor values_of(checkpoint::Checkpoint& from, const model::ParameterSpec& parameter, DType dtype) {
  const std::string name = value_tensor(parameter.name);
  require_tensor(from, name, parameter.shape);
  const at::Tensor all = at::empty({parameter.elements()}, nn::scalar_type_of(dtype));
  const auto count = static_cast<std::size_t>(all.numel());
  std::vector<float> values;
  for (std::size_t begin = 0; begin < count; begin += kPiece) {
    values.resize(std::min(kPiece, count - begin));
    from.read(name, {begin, begin + values.size()}, values);
    write_working(
        values, dtype,
        {static_cast<std::byte*>(all.data_ptr()) + begin * size_of(dtype), values.size() * size_of(dtype)});
  }
  return all;
}

// Whoever names a tokenizer may know better: the same words can stand in another file.
void warn_about_tokenizer(const checkpoint::Checkpoint& from, const std::string& name,
                          const checkpoint::FolderTokenizer& tokenizer) {
  const std::string& saved = from.manifest().tokenizer_digest;
  const std::string digest = digest_of(tokenizer);
  if (saved.empty() || saved == digest) return;
  log::warning(fmt::format(
      "{} was trained with a tokenizer of digest {}, but {} has {}: unless both have the same words, "
      "what the model writes will make no sense",
      from.path(), saved, name, digest));
}

// The checkpoint of step 0.
std::optional<std::string> first_state_in(const checkpoint::CheckpointStore& store) {
  for (const checkpoint::Listed& listed : store.committed()) {
    if (listed.step == 0) return listed.path;
  }
  return std::nullopt;
}

}  // namespace

void export_model(const std::string& checkpoint, const std::string& folder, const ExportOptions& options) {
  checkpoint::Checkpoint from(checkpoint::find_checkpoint(checkpoint));
  spec::RunSpec run = checkpoint::saved_run(from.manifest(), from.path());
  if (!options.tokenizer.empty()) run.data.tokenizer = options.tokenizer;
  const checkpoint::FolderTokenizer tokenizer = tokenizer_of(run, kept_tokenizer_beside(from.path()));
  if (!options.tokenizer.empty()) warn_about_tokenizer(from, options.tokenizer, tokenizer);
  const model::Model model = model_of(run.model);
  const model::FlatLayout layout(model);
  const DType dtype = options.dtype.value_or(run.training.dtype);
  save_model(
      folder, run.model, layout, dtype,
      [&](std::size_t parameter) { return values_of(from, layout.specs()[parameter], dtype); }, tokenizer);
}

std::string import_model(const std::string& folder, const std::string& store_folder) {
  checkpoint::CheckpointStore store(store_folder);
  if (const auto there = first_state_in(store)) {
    throw UsageError(fmt::format("{} is there already: choose another folder, or remove it first", *there));
  }
  const checkpoint::ModelFolder from(folder);
  require_plausible(from);
  spec::RunSpec run;
  run.model = from.config().model;
  run.training.seq_len = std::min(run.training.seq_len, run.model.max_seq_len);
  const model::Model model = model_of(run.model);
  const model::FlatLayout layout(model);
  const at::Tensor all = at::empty({layout.elements()}, at::kFloat);
  std::vector<checkpoint::OutgoingPiece> pieces;
  load_values(from, run.model, layout, layout, [&](std::size_t parameter, std::span<const float> values) {
    const auto place =
        nn::floats_of(all).subspan(static_cast<std::size_t>(layout.places()[parameter].first), values.size());
    std::ranges::copy(values, place.begin());
    pieces.push_back({.tensor = value_tensor(layout.specs()[parameter].name),
                      .elements = {.length = values.size(), .distance = values.size()},
                      .values = [place] { return std::span<const float>(place); }});
  });
  const std::string id = "import";
  try {
    store.begin(0, id);
    checkpoint::write_shard(real_disk(), store.staging_folder(0, id), 0, pieces);
    checkpoint::Manifest manifest;
    manifest.configuration = spec::to_toml(run);
    manifest.written_by = "import of " + folder;
    manifest.tensors = state_tensors(layout, 0);
    store.commit(id, std::move(manifest), 1);
  } catch (...) {
    store.abandon(0, id);
    throw;
  }
  const auto made = first_state_in(store);
  LOCKSTEP_CHECK(made.has_value(), "what was committed is not in " + store_folder);
  return *made;
}

}  // namespace lockstep::train
