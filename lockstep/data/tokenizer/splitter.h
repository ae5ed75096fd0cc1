// SPDX-License-Identifier: Apache-2.0
//
// Pre-tokenization: text is cut into *words*, within which pairs of tokens are merged. A cut is given by the
// pattern of a regular expression in the dialect of Hugging Face's tokenizers: every match is a word, and so
// is what stands between two matches.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

inline constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr const char* kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr const char* kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Immutable; safe to use from several threads.
class Splitter {
 public:
  virtual ~Splitter() = default;

  // Cuts `text` (valid UTF-8), and sets `ends` to where the words end: rising, the last at the end of the
  // text. No word is empty. DataError when the pattern backtracks beyond its limit.
  virtual void split(std::string_view text, std::vector<std::size_t>& ends) const = 0;
};

// By PCRE2, compiled to machine code where it can. UsageError when the pattern is not understood.
std::unique_ptr<Splitter> regex_splitter(const std::string& pattern);

// Applies `patterns` one after another, each to the words of the one before; none: the whole text is one
// word.
class SplitterChain : public Splitter {
 public:
  explicit SplitterChain(const std::vector<std::string>& patterns);
  void split(std::string_view text, std::vector<std::size_t>& ends) const override;

 private:
  std::vector<std::unique_ptr<Splitter>> stages_;
};

}  // namespace lockstep::data
