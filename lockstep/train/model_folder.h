// SPDX-License-Identifier: Apache-2.0
//
// Between models in memory and folders as Hugging Face's programs have them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <ATen/core/Tensor.h>

#include "lockstep/checkpoint/hugging_face/folder.h"
#include "lockstep/model/parameters.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::train {

// Gives the values of a parameter of the whole layout, flat, in the dtype that files get; asked for once
// each.
using ParameterSource = std::function<at::Tensor(std::size_t parameter)>;

// Holds one parameter at a time. UsageError when something cannot be written.
void save_model(const std::string& path, const spec::Model& spec, const model::FlatLayout& layout,
                DType dtype, const ParameterSource& values, const checkpoint::FolderTokenizer& tokenizer);
// The same of flat parameters in memory.
void save_model(const std::string& path, const spec::Model& spec, const model::FlatLayout& layout,
                const at::Tensor& values, const checkpoint::FolderTokenizer& tokenizer);

// UsageError naming the first key of [model] that `file`, which describes the model `there`, contradicts.
// Dropout may differ, and so may the longest sequence: where it shapes tensors, whoever loads them tells.
void require_same_model(const spec::Model& there, const std::string& file, const spec::Model& spec);

// Before a model is made of what a configuration says: DataError when it describes far more than the folder
// has weights for, UsageError when this host has no memory for it.
void require_plausible(const checkpoint::ModelFolder& folder);

// Takes the values of a parameter of the whole layout; they are gone afterwards.
using ParameterSink = std::function<void(std::size_t parameter, std::span<const float> values)>;

// Reads those parameters that `held` has something of from a folder that has the whole model, one after the
// other. UsageError naming the first tensor that does not fit, held or not; nothing is read then.
void load_values(const checkpoint::ModelFolder& folder, const spec::Model& spec,
                 const model::FlatLayout& whole, const model::FlatLayout& held, const ParameterSink& take);

// A language model from a folder, to compute with but not to train.
class LoadedModel {
 public:
  // In the dtype that the folder's configuration names, or `dtype`. Errors are those of ModelFolder and
  // load_values().
  explicit LoadedModel(const std::string& path, std::optional<DType> dtype = std::nullopt);

  const spec::Model& spec() const { return config_.model; }
  const checkpoint::SpecialTokens& special_tokens() const { return config_.special; }
  const model::Model& model() const { return model_; }
  const model::FlatLayout& layout() const { return layout_; }
  const at::Tensor& values() const { return values_; }  // flat
  const model::Parameters& parameters() const { return *parameters_; }

 private:
  LoadedModel(const checkpoint::ModelFolder& folder, std::optional<DType> dtype);

  checkpoint::FolderConfig config_;
  model::Model model_;
  model::FlatLayout layout_;
  at::Tensor values_;
  std::unique_ptr<const model::Parameters> parameters_;
};

// For blocks that only go forward: looks like the gradients of so many elements, and takes no memory.
at::Tensor no_gradients(std::int64_t elements);

}  // namespace lockstep::train
