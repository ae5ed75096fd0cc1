// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/checkpoint/hugging_face/folder_tokenizer.h"
#include "lockstep/spec/run_spec.h"

namespace lockstep::train {

// The one that the run names, or that `lockstep prepare` has left beside a corpus of it; null when there is
// none. Its companions and special tokens are those of the folder that the run begins with
// (checkpoint.initial_load_path), or that data.tokenizer is in. Errors are those of load_tokenizer() and
// take_companions().
checkpoint::FolderTokenizer tokenizer_of(const spec::RunSpec& run);

}  // namespace lockstep::train
