// SPDX-License-Identifier: Apache-2.0
//
// Whether corpora, weights and data.tokenizer have one tokenizer, as data::require_same_tokenizer() tells.
#pragma once

#include <string>
#include <vector>

#include "lockstep/checkpoint/hugging_face/folder_tokenizer.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::train {

// Of what tokenizer_of() has found: UsageError when a corpus that the run reads was made with another one.
void require_one_tokenizer(const spec::RunSpec& run, const checkpoint::FolderTokenizer& found);

// UsageError when the corpora were made with another tokenizer than a Hugging Face folder has: its
// tokenizer.json, or else its tokenizer.model.
void require_tokenizer_of_model(const std::string& folder, const std::vector<std::string>& corpora);

// Of a run that begins with weights: UsageError when its corpora, or data.tokenizer, have another one. That
// of a checkpoint is the file of its digest which its run keeps, has written into model/, or was made with.
void require_tokenizer_of_first_values(const spec::RunSpec& run, const checkpoint::FolderTokenizer& found);

}  // namespace lockstep::train
