// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/corpus/token_array.h"
#include "lockstep/data/corpus/token_source.h"

namespace lockstep::data {

// Several sources read as one, in the order given.
class ConcatenatedSource : public TokenSource {
 public:
  explicit ConcatenatedSource(std::vector<std::unique_ptr<TokenSource>> parts);

  std::uint64_t size() const override { return begins_.back(); }
  void copy(std::uint64_t begin, std::span<Token> out) const override;

 private:
  std::vector<std::unique_ptr<TokenSource>> parts_;
  std::vector<std::uint64_t> begins_;  // one more than parts: the last is the size
};

struct CorpusOptions {
  std::uint64_t vocab_size = kAnyVocabulary;
  // How many tokens at the begin of every file are compared with the vocabulary when it is opened; the rest
  // are when they are read.
  std::uint64_t verified_tokens = std::uint64_t{1} << 28;
};

// Opens what a user calls a corpus:
//   data/kjv                data/kjv.bin and .idx, or data/kjv_text_document.bin and .idx (Megatron)
//   data/kjv.bin            the same when data/kjv.idx is there; else llm.c by its header, or nanoGPT
//   'data/web_train_*.bin'  all files that match (* and ? in the last part of the path) as one, by name
//   data/                   all .bin files of the folder as one, by name
// UsageError when there is no such file, DataError when one is corrupt.
std::unique_ptr<TokenSource> open_corpus(const std::string& path, const CorpusOptions& options);

// What the tokenizer of a corpus is called behind its prefix.
inline constexpr const char* kJsonTokenizer = ".tokenizer.json";
inline constexpr const char* kPieceTokenizer = ".tokenizer.model";  // of sentencepiece

// A tokenizer that `lockstep prepare` has left beside a corpus.
struct TokenizerBeside {
  std::string corpus;  // or the file of it that this one made
  std::string file;
  bool operator==(const TokenizerBeside&) const = default;
};

// Those of a corpus, which is named as above, in the order of its files; none when there is no such corpus.
std::vector<TokenizerBeside> tokenizers_beside(const std::string& path);
// The first of them that is a tokenizer.json; none when there is none.
std::optional<std::string> tokenizer_beside(const std::string& path);

}  // namespace lockstep::data
