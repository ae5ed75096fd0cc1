// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "lockstep/data/tokenizer/bpe_model.h"
#include "lockstep/data/tokenizer/tokenizer.h"

namespace lockstep::data {

bool has_token(const BpeModel& model, Token token);

// DataError for a token that the model does not have.
const std::string& bytes_of(const BpeModel& model, Token token);

// The first that the tokenizer has of what vocabularies in use call the end of a document.
std::optional<Token> find_end_of_document(const Tokenizer& tokenizer);

}  // namespace lockstep::data
