// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/data/tokenizer/bpe_model.h"
#include "lockstep/data/tokenizer/json_fields.h"

namespace lockstep::data {

// What the normalizer, the pre_tokenizer and the decoder of a tokenizer.json say, with no token yet.
// UsageError naming what is not supported.
MetaspaceRules read_metaspace_rules(const nlohmann::json& file, const JsonFields& fields);

// What a token of the file stands for in a text: <0x0A> for a byte, U+2581 for a space.
std::string metaspace_bytes(const std::string& token);

// Adds the token to the rules, if it is a byte or a character that words begin as.
void note_token(MetaspaceRules& rules, const std::string& token, Token id);

// Puts spaces in the place of U+2581.
void replace_marks(std::string& text);

}  // namespace lockstep::data
