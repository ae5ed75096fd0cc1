// SPDX-License-Identifier: Apache-2.0
//
// The file tokenizer.json of Hugging Face's tokenizers, as far as byte-level byte-pair encodings use it:
//   model          type BPE; merges as pairs or as "a b"; ignore_merges
//   pre_tokenizer  ByteLevel, Split (by a regular expression, isolated), Digits, and sequences of them
//   normalizer     none or NFC
//   added_tokens   found in text before anything else
// The post-processor is not applied: no token is added to a text that does not hold it.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/data/tokenizer/bpe_model.h"

namespace lockstep::data {

// `name` is what errors call the file. DataError when it is corrupt, UsageError naming what is not supported.
BpeModel from_hugging_face(std::string_view json, const std::string& name);

// Opens elsewhere with the same tokens for the same text.
std::string to_hugging_face(const BpeModel& model);

}  // namespace lockstep::data
