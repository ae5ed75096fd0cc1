// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/checkpoint/hugging_face/folder_tokenizer.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::train {

// Of the folder of a run: where it keeps what tokenizer_of() has found when it began
// (checkpoint::keep_companions), because the folders that this came from may be gone when the run goes on.
std::string kept_tokenizer(const std::string& run_folder);
std::string kept_tokenizer_beside(const std::string& checkpoint);  // of the same run

// The one that the run names, or that `lockstep prepare` has left beside a corpus of it; null when there is
// none. Its companions and special tokens are those of the first of these folders that has some for it:
// `kept`, when the run goes on; that which the run begins with (checkpoint.initial_load_path); that which
// data.tokenizer is in, where files that are not about tokens are ignored. Errors are those of
// load_tokenizer() and take_companions().
checkpoint::FolderTokenizer tokenizer_of(const spec::RunSpec& run, const std::string& kept = {});

// Of what tokenizer_of() has found, as checkpoints keep it; empty when that is none.
std::string digest_of(const checkpoint::FolderTokenizer& found);
std::string digest_of(const std::string& content);  // of the file of one

}  // namespace lockstep::train
