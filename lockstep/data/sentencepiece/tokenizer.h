// SPDX-License-Identifier: Apache-2.0
//
// A library of its own, because libsentencepiece brings symbols of protobuf that clash with those of
// libtorch: a program may link lockstep_sentencepiece or libtorch, not both. Others link
// lockstep_no_sentencepiece.
#pragma once

#include <memory>
#include <string>

#include "lockstep/data/tokenizer/tokenizer.h"

namespace lockstep::data {

// The sentencepiece model in a file. Text comes back as the model normalizes it: without changed spaces only
// if the model says so. DataError when the file is corrupt, UsageError when it cannot be read or this program
// has no libsentencepiece.
std::unique_ptr<Tokenizer> load_sentencepiece(const std::string& path);

}  // namespace lockstep::data
