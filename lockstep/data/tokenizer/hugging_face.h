// SPDX-License-Identifier: Apache-2.0
//
// The file tokenizer.json of Hugging Face's tokenizers, as far as byte-pair encodings use it.
// Byte-level:
//   model          type BPE; merges as pairs or as "a b"; ignore_merges
//   pre_tokenizer  ByteLevel, Split (by a regular expression, isolated), Digits, and sequences of them
//   normalizer     none or NFC
//   added_tokens   found in text before anything else
// Made from sentencepiece (MetaspaceRules):
//   model          type BPE with byte_fallback and a token for every byte
//   normalizer     Prepend and Replace, or Replace, of U+2581; or none, and
//   pre_tokenizer  Metaspace
//   decoder        a sequence of Replace, ByteFallback, Fuse and perhaps Strip
//   added_tokens   found before normalization, or after it if they say so
// The post-processor is not applied: no token is added to a text that does not hold it.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/data/tokenizer/bpe_model.h"
#include "lockstep/data/tokenizer/tokenizer.h"

namespace lockstep::data {

// `name` is what errors call the file. DataError when it is corrupt, UsageError naming what is not supported.
BpeModel from_hugging_face(std::string_view json, const std::string& name);

// Of a model that was read from `serialized`. Errors are those of BpeTokenizer.
std::unique_ptr<Tokenizer> make_tokenizer(BpeModel model, std::string serialized);

// Of a byte-level model. Opens elsewhere with the same tokens for the same text.
std::string to_hugging_face(const BpeModel& model);

}  // namespace lockstep::data
