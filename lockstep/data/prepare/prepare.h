// SPDX-License-Identifier: Apache-2.0
//
// From text to a corpus. Both functions read their inputs in parallel and in constant memory, and give the
// same result for any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/corpus/corpus.h"
#include "lockstep/data/corpus/megatron_writer.h"
#include "lockstep/data/prepare/document_reader.h"
#include "lockstep/data/prepare/inputs.h"
#include "lockstep/data/tokenizer/bpe_model.h"
#include "lockstep/data/tokenizer/tokenizer.h"

namespace lockstep::data {

struct PrepareOptions {
  std::vector<Input> inputs;
  std::string
      output;  // PREFIX: makes PREFIX.bin and .idx, and with validation PREFIX_validation.bin and .idx
  // Gets the tokenizer: PREFIX and kJsonTokenizer or kPieceTokenizer; so does that of PREFIX_validation, if
  // it is made. Empty: none does.
  std::string tokenizer_file;
  ReaderOptions reader;
  std::string json_key = "text";
  std::optional<Token> end_of_document;  // appended to each document
  int threads = 1;
  // How much may have to be done again after an interruption; saving waits for the disk.
  std::uint64_t bytes_between_saves = std::uint64_t{1} << 26;
};

std::string validation_prefix_of(const PrepareOptions& options);

struct PrepareProgress {
  std::uint64_t bytes = 0;  // of text read, decompressed
  MegatronWriter::Mark train, validation;
  std::uint64_t resumed_bytes = 0;  // of those, what an interrupted run had already done
};

// Called now and then, by one thread at a time, and once when everything was read. What it raises ends the
// work.
using ProgressCallback = std::function<void(const PrepareProgress&)>;

// Writes the corpus. When it was interrupted before, by a signal or a loss of power, it goes on with what is
// saved in PREFIX.progress, provided that inputs, tokenizer and options are the same; otherwise it begins
// anew. A corpus that was there before stays until the new one is complete on the disk; then its files go
// before the first of the new ones comes, so that no moment has some of both, and PREFIX.idx comes last.
// PREFIX_validation is replaced with validation, and otherwise left as it is. UsageError when another process
// writes the same output, DataError for corrupt inputs; what was saved until then is kept, and when
// `progress` or ReaderOptions::while_reading, which may be called at the same time, raises something all that
// was done before.
PrepareProgress prepare_corpus(const PrepareOptions& options, const Tokenizer& tokenizer,
                               const ProgressCallback& progress);

// Whether there is a PREFIX_validation that preparing without validation has left as it is, and that may have
// been made with another tokenizer: it does not have the same one beside it.
bool has_validation_of_before(const PrepareOptions& options);

struct TrainTokenizerOptions {
  std::uint64_t vocab_size = 0;
  std::string pattern;                   // of words; splitter.h
  std::uint64_t max_bytes = 1ULL << 28;  // how much text is looked at, from the begin of the inputs
};

// Learns a tokenizer from the inputs of `options`, documents for validation left out. UsageError when
// standard input is among them, for it can be read only once.
BpeModel train_tokenizer(const PrepareOptions& options, const TrainTokenizerOptions& training,
                         const ProgressCallback& progress);

}  // namespace lockstep::data
