// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "lockstep/data/tokenizer/tokenizer.h"

namespace lockstep::data {

// A sentencepiece model, as stored in a .model file that errors call `name`. Text comes back as the model
// normalizes it: without changed spaces only if the model says so. DataError when it is corrupt, UsageError
// when this build has no libsentencepiece.
std::unique_ptr<Tokenizer> sentencepiece_tokenizer(std::string model, const std::string& name);

}  // namespace lockstep::data
