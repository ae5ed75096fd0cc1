// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/corpus/corpus_tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/data/corpus/corpus.h"
#include "lockstep/data/tokenizer/file_content.h"
#include "lockstep/data/tokenizer/hugging_face.h"
#include "lockstep/data/tokenizer/utf8.h"
#include "lockstep/data/tokenizer/word_difference.h"

namespace lockstep::data {
namespace {

// Tokenizers that are no copies of each other; most often there is one, which need not be understood.
using Distinct = std::vector<OwnedTokenizer>;

// A corpus may have thousands of files with a copy, or a link, beside each.
void add(const TokenizerBeside& beside, Distinct& all) {
  const auto is_copy = [&](const OwnedTokenizer& known) {
    std::error_code no_file;
    return std::filesystem::equivalent(beside.file, known.name, no_file) ||
           has_content(beside.file, known.content);
  };
  if (std::ranges::any_of(all, is_copy)) return;
  all.push_back({.name = beside.file, .owner = beside.corpus, .content = tokenizer_content(beside.file)});
}

bool is_of_pieces(const std::string& name) {
  return name.ends_with(".model");
}

// None when it is of a kind that is not supported.
std::optional<BpeModel> model_of(const OwnedTokenizer& tokenizer) {
  try {
    return from_hugging_face(tokenizer.content, tokenizer.name);
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

[[noreturn]] void refuse(const OwnedTokenizer& first, const OwnedTokenizer& other,
                         const std::string& difference) {
  throw UsageError(
      fmt::format("{} was made with another tokenizer than that of {}: {}; prepare its text again with "
                  "--tokenizer {}{}",
                  other.owner, first.owner, difference, first.name, first.remedy));
}

// A word need not be a whole text, nor one that a terminal should get.
std::string printable_word(std::string_view word) {
  constexpr std::size_t kLongestWord = 64;
  constexpr std::size_t kLongestLetter = 4;
  std::string shown;
  for (std::size_t at = 0; at < std::min(word.size(), kLongestWord);) {
    std::size_t end = at;
    const bool is_letter = valid_utf8_prefix(word.substr(at, kLongestLetter)) > 0;
    const char32_t letter = is_letter ? next_code_point(word, end) : 0;
    if (letter >= 0x20 && (letter < 0x7f || letter > 0x9f)) {
      shown += word.substr(at, end - at);
    } else {
      end = at + 1;
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(word[at]));
    }
    at = end;
  }
  return word.size() > kLongestWord ? shown + "..." : shown;
}

std::string described(const std::string& word) {
  return word.empty() ? "missing" : fmt::format("'{}'", printable_word(word));
}

std::string in_words(const WordDifference& difference, const std::string& one, const std::string& other) {
  return fmt::format("token {} is {} in {}, but {} in {}", difference.token, described(difference.one), one,
                     described(difference.other), other);
}

void require_same_words(const Distinct& all) {
  if (all.size() < 2) return;
  const OwnedTokenizer* first = nullptr;
  BpeModel words;
  for (const OwnedTokenizer& tokenizer : all) {
    std::optional<BpeModel> model = model_of(tokenizer);
    if (!model) continue;
    if (first == nullptr) {
      first = &tokenizer;
      words = std::move(*model);
    } else if (const auto difference = first_difference(*model, words)) {
      refuse(*first, tokenizer, in_words(*difference, tokenizer.name, first->name));
    }
  }
}

void require_same_bytes(const Distinct& all) {
  if (all.size() < 2) return;
  refuse(all[0], all[1], fmt::format("{} and {} are different files", all[1].name, all[0].name));
}

}  // namespace

void require_same_tokenizer(const std::vector<std::string>& corpora,
                            const std::optional<OwnedTokenizer>& expected) {
  Distinct json, pieces;
  if (expected) (is_of_pieces(expected->name) ? pieces : json).push_back(*expected);
  for (const std::string& corpus : corpora) {
    for (const TokenizerBeside& beside : tokenizers_beside(corpus)) {
      add(beside, is_of_pieces(beside.file) ? pieces : json);
    }
  }
  require_same_words(json);
  require_same_bytes(pieces);
}

std::optional<std::string> difference_between(const OwnedTokenizer& one, const OwnedTokenizer& other) {
  if (one.content == other.content || is_of_pieces(one.name) || is_of_pieces(other.name)) return std::nullopt;
  const auto words = model_of(one), others = model_of(other);
  const auto difference = words && others ? first_difference(*words, *others) : std::nullopt;
  return difference ? std::optional(in_words(*difference, one.name, other.name)) : std::nullopt;
}

}  // namespace lockstep::data
