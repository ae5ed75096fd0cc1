// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "lockstep/checkpoint/hugging_face/folder.h"
#include "lockstep/checkpoint/store/reader.h"
#include "lockstep/train/weights.h"

namespace lockstep::train {

// The folder with the weights that checkpoint.initial_load_path names: that of a checkpoint, or else the path
// itself. UsageError when it is of checkpoints and has none, or is nothing of the kind.
std::string first_values_folder(const std::string& path);

// The weights that a run begins with in place of random ones: of a Hugging Face folder, or of a checkpoint.
class FirstValues {
 public:
  // Finds them. UsageError when there are none, or they are of another model; DataError when they are
  // corrupt.
  FirstValues(const std::string& path, const spec::Model& model);

  // All ranks together. Errors as above, and UsageError when ranks find different values.
  void load(const Holding& holding, Weights& weights);

 private:
  void load_folder(const Holding& holding, Weights& weights) const;
  void load_checkpoint(const Holding& holding, Weights& weights);

  std::string path_;
  const spec::Model& model_;
  std::optional<checkpoint::Checkpoint> checkpoint_;
  std::optional<checkpoint::ModelFolder> folder_;  // the other one is none
};

}  // namespace lockstep::train
