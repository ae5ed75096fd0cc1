// SPDX-License-Identifier: Apache-2.0
//
// Weights between checkpoints and folders as Hugging Face's programs have them.
#pragma once

#include <optional>
#include <string>

#include "lockstep/base/dtype.h"

namespace lockstep::train {

struct ExportOptions {
  std::optional<DType> dtype = std::nullopt;  // none: that the run trained in
  // File; empty: that of the run, if it has one. Another one than that is warned about.
  std::string tokenizer = {};
};

// Writes the weights of a checkpoint (a path as checkpoint::find_checkpoint() takes it) as such a folder:
// what the run would have left had it ended there. UsageError when something cannot be found or written,
// DataError when the checkpoint is bad.
void export_model(const std::string& checkpoint, const std::string& folder, const ExportOptions& options);

// Makes the weights of such a folder a checkpoint of step 0 in `store`, to begin runs with; returns its path.
// It has nothing of an optimizer. UsageError when there is one of that step already.
std::string import_model(const std::string& folder, const std::string& store);

}  // namespace lockstep::train
