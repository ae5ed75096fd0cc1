// SPDX-License-Identifier: Apache-2.0
#include "lockstep/train/model_folder.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/host_memory.h"
#include "lockstep/checkpoint/hugging_face/state.h"
#include "lockstep/kernels/compute/update/vectors.h"
#include "lockstep/metrics/progress.h"
#include "lockstep/model/gpt/state_names.h"
#include "lockstep/model/llama/state_names.h"
#include "lockstep/model/mlp/state_names.h"
#include "lockstep/nn/tensor_view.h"
#include "lockstep/spec/model_size.h"
#include "lockstep/spec/write.h"
#include "lockstep/train/model_of.h"

namespace lockstep::train {
namespace {

struct Family {
  model::StateName (*state_name)(const model::ParameterSpec&);
  bool (*is_not_trained)(std::string_view);
};

Family family_of(const spec::Model& spec) {
  if (spec.name == spec::ModelFamily::gpt) return {model::gpt::state_name, model::gpt::is_not_trained};
  if (spec.name == spec::ModelFamily::mlp) return {model::mlp::state_name, model::mlp::is_not_trained};
  return {model::llama::state_name, model::llama::is_not_trained};
}

// Without values.
std::vector<checkpoint::StateTensor> state_of(const Family& family, const model::FlatLayout& layout) {
  std::vector<checkpoint::StateTensor> tensors;
  for (const model::ParameterSpec& spec : layout.specs()) {
    model::StateName in_file = family.state_name(spec);
    tensors.push_back({.name = std::move(in_file.name),
                       .other_name = std::move(in_file.other_name),
                       .shape = spec.shape,
                       .transposed = in_file.transposed,
                       .values = {}});
  }
  return tensors;
}

// The values in fp32, and the table of the rotary embedding.
std::uint64_t memory_of(const spec::Model& spec) {
  const auto floats = spec::parameter_count(spec) +
                      (spec.name == spec::ModelFamily::llama ? spec.max_seq_len * spec.head_width : 0);
  return static_cast<std::uint64_t>(floats) * sizeof(float);
}

const checkpoint::FolderConfig& of_text(const checkpoint::ModelFolder& folder) {
  if (folder.config().model.name == spec::ModelFamily::mlp) {
    throw UsageError(folder.path() + " holds an mlp, which neither reads nor writes text");
  }
  require_plausible(folder);
  return folder.config();
}

}  // namespace

void save_model(const std::string& path, const spec::Model& spec, const model::FlatLayout& layout,
                DType dtype, const ParameterSource& values, const checkpoint::FolderTokenizer& tokenizer) {
  const std::vector<checkpoint::StateTensor> state = state_of(family_of(spec), layout);
  std::vector<checkpoint::OutgoingTensor> tensors;
  for (std::size_t i = 0; i < state.size(); ++i) {
    tensors.push_back(checkpoint::outgoing(state[i], dtype));
    tensors.back().fill = [tensor = state[i], i, &values, dtype](Bytes bytes) {
      const at::Tensor floats = values(i).to(at::kFloat);
      checkpoint::StateTensor filled = tensor;
      filled.values = nn::floats_of(floats);
      checkpoint::outgoing(filled, dtype).fill(bytes);
    };
  }
  const checkpoint::FolderConfig config = {
      .model = spec, .dtype = dtype, .special = tokenizer.special_tokens()};
  checkpoint::save_folder(path, config, std::move(tensors), tokenizer);
}

void save_model(const std::string& path, const spec::Model& spec, const model::FlatLayout& layout,
                const at::Tensor& values, const checkpoint::FolderTokenizer& tokenizer) {
  const ParameterSource source = [&](std::size_t parameter) {
    return values.narrow(0, layout.places()[parameter].first, layout.places()[parameter].count);
  };
  save_model(path, spec, layout, nn::dtype_of(values), source, tokenizer);
}

void require_same_model(const spec::Model& there, const std::string& file, const spec::Model& spec) {
  const auto lines_of = [&](spec::Model model) {
    model.preset = spec.preset;
    model.dropout = spec.dropout;
    model.max_seq_len = spec.max_seq_len;
    spec::RunSpec run;
    run.model = model;
    if (model.name == spec::ModelFamily::mlp) {  // which has no more keys than these
      run.model = spec;
      run.model.name = model.name;
      run.model.layers = model.layers;
      run.model.width = model.width;
      run.model.vocab_size = model.vocab_size;
    }
    return std::istringstream(spec::to_toml(run));
  };
  std::istringstream ours = lines_of(spec);
  std::istringstream theirs = lines_of(there);
  for (std::string mine, other; std::getline(ours, mine) && std::getline(theirs, other);) {
    if (mine == other) continue;
    throw UsageError(
        fmt::format("{} says {}, but [model] of the run says {}: write the former there", file, other, mine));
  }
}

void require_plausible(const checkpoint::ModelFolder& folder) {
  const spec::Model& spec = folder.config().model;
  const std::string file = folder.path() + "/config.json";
  // A parameter has two bytes or more: what lacks less than half of them is told by the name of a tensor.
  const auto parameters = static_cast<std::uint64_t>(spec::parameter_count(spec));
  if (parameters > folder.bytes()) {
    throw DataError(
        fmt::format("{}: it describes a model of {} parameters, but all weights beside it are {} "
                    "bytes",
                    file, parameters, folder.bytes()));
  }
  const std::uint64_t most = read_host_memory().most();
  if (most == 0 || memory_of(spec) <= most) return;
  throw UsageError(fmt::format(
      "{}: the model and the tables of its {} places need {} of memory, but all there is are {}: "
      "choose a smaller one, or lower max_position_embeddings there",
      file, spec.max_seq_len, metrics::format_memory(memory_of(spec)), metrics::format_memory(most)));
}

void load_values(const checkpoint::ModelFolder& folder, const spec::Model& spec,
                 const model::FlatLayout& whole, const model::FlatLayout& held, const ParameterSink& take) {
  const Family family = family_of(spec);
  const std::vector<checkpoint::StateTensor> state = state_of(family, whole);
  checkpoint::read_state(folder, state, family.is_not_trained);
  std::vector<float> values;
  for (std::size_t i = 0; i < state.size(); ++i) {
    const std::string& name = whole.specs()[i].name;
    if (std::ranges::find(held.specs(), name, &model::ParameterSpec::name) == held.specs().end()) continue;
    checkpoint::StateTensor tensor = state[i];
    values.resize(static_cast<std::size_t>(whole.places()[i].count));
    tensor.values = values;
    checkpoint::read_state(folder, std::span<const checkpoint::StateTensor>(&tensor, 1),
                           [](std::string_view) { return true; });
    if (const auto bad = kernels::first_not_finite(values)) {
      throw DataError(fmt::format("{}: tensor '{}' has {} at place {}: these are not weights to go on with",
                                  folder.path(), tensor.name,
                                  std::isnan(values[*bad]) ? "no number" : "an infinite number", *bad));
    }
    take(i, values);
  }
}

LoadedModel::LoadedModel(const std::string& path, std::optional<DType> dtype)
    : LoadedModel(checkpoint::ModelFolder(path), dtype) {}

LoadedModel::LoadedModel(const checkpoint::ModelFolder& folder, std::optional<DType> dtype)
    : config_(of_text(folder)),
      model_(model_of(config_.model)),
      layout_(model_),
      values_(at::empty({layout_.elements()}, at::kFloat)) {
  const auto take = [&](std::size_t parameter, std::span<const float> values) {
    const auto first = static_cast<std::size_t>(layout_.places()[parameter].first);
    std::ranges::copy(values, nn::floats_of(values_).subspan(first).begin());
  };
  load_values(folder, config_.model, layout_, layout_, take);
  values_ = values_.to(nn::scalar_type_of(dtype.value_or(config_.dtype.value_or(DType::fp32))));
  parameters_ = std::make_unique<const model::Parameters>(layout_, values_, no_gradients(layout_.elements()));
}

at::Tensor no_gradients(std::int64_t elements) {
  return at::empty({1}, at::kFloat).expand({elements});
}

}  // namespace lockstep::train
