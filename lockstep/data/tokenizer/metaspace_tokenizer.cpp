// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/tokenizer/metaspace_tokenizer.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/data/tokenizer/merger.h"
#include "lockstep/data/tokenizer/metaspace_rules.h"
#include "lockstep/data/tokenizer/utf8.h"
#include "lockstep/data/tokenizer/vocabulary.h"
#include "lockstep/data/tokenizer/word_cache.h"

namespace lockstep::data {
namespace {

using Prefix = MetaspaceRules::Prefix;

bool has_inner_space(std::string_view token) {
  for (std::size_t at = 1; at < token.size(); ++at) {
    if (token[at] == ' ' && token[at - 1] != ' ') return true;
  }
  return false;
}

bool any_merge_has_inner_space(const BpeModel& model) {
  return std::ranges::any_of(model.merges,
                             [&](const Merge& merge) { return has_inner_space(model.tokens[merge.result]); });
}

// Those that are searched after normalization, in the form that they have then, or those before it.
std::vector<AddedToken> added_tokens(const BpeModel& model, bool normalized) {
  std::vector<AddedToken> chosen;
  for (AddedToken token : model.added) {
    if (token.normalized != normalized) continue;
    if (normalized && model.metaspace->normalizes) {
      replace_marks(token.text);
      if (model.metaspace->prefix == Prefix::always) token.text.insert(0, 1, ' ');
    }
    chosen.push_back(std::move(token));
  }
  return chosen;
}

// Appends the added tokens of the text, and calls `part(text, place)` for what stands between them.
template <typename Part>
void between(const AddedTokenFinder& finder, std::string_view text, std::vector<Token>& tokens, Part&& part) {
  std::size_t at = 0;
  while (const auto match = finder.find(text, at)) {
    if (match->begin > at) part(text.substr(at, match->begin - at), at);
    tokens.push_back(match->id);
    at = match->end;
  }
  if (at < text.size()) part(text.substr(at), at);
}

}  // namespace

class MetaspaceTokenizer::WordEncoder : public Encoder {
 public:
  explicit WordEncoder(const MetaspaceTokenizer& tokenizer)
      : tokenizer_(tokenizer), rules_(tokenizer.rules()), merger_(tokenizer.pairs_) {}

  void encode(std::string_view text, std::vector<Token>& tokens) override {
    encode_parts(text, true, tokens);
  }
  void encode_more(std::string_view text, std::vector<Token>& tokens) override {
    encode_parts(text, false, tokens);
  }

 private:
  void encode_parts(std::string_view text, bool begins, std::vector<Token>& tokens) {
    require_valid_utf8(text);
    between(tokenizer_.plain_, text, tokens, [&](std::string_view part, std::size_t at) {
      if (rules_.normalizes) {
        between(tokenizer_.normalized_, normal_form(part, at, begins), tokens,
                [&](std::string_view words, std::size_t) { encode_words(words, tokens); });
      } else {
        between(tokenizer_.normalized_, part, tokens, [&](std::string_view inner, std::size_t behind) {
          encode_words(normal_form(inner, at + behind, begins), tokens);
        });
      }
    });
  }

  // Of the part that stands at `at` of its text. Valid until the next call.
  std::string_view normal_form(std::string_view part, std::size_t at, bool begins) {
    normal_.assign(is_marked(part, at, begins) ? 1 : 0, ' ');
    normal_ += part;
    replace_marks(normal_);
    return normal_;
  }

  bool is_marked(std::string_view part, std::size_t at, bool begins) const {
    if (at == 0 && !begins) return false;
    const bool missing = !part.starts_with(' ') && !part.starts_with("\u2581");
    switch (rules_.prefix) {
      case Prefix::none:
        return false;
      case Prefix::always:
        return true;
      case Prefix::where_missing:
        return missing;
      case Prefix::first:
        return missing && at == 0;
    }
    return false;
  }

  void encode_words(std::string_view text, std::vector<Token>& tokens) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = end_of_word(text, begin);
      encode_word(text.substr(begin, end - begin), tokens);
      begin = end;
    }
  }

  // Where no merge joins two words, words can be encoded one by one: no merge in one depends on another.
  std::size_t end_of_word(std::string_view text, std::size_t begin) const {
    if (rules_.split) return std::min(text.find(' ', begin + 1), text.size());
    if (tokenizer_.words_meet_) return text.size();
    return std::min(text.find(' ', text.find_first_not_of(' ', begin)), text.size());
  }

  void encode_word(std::string_view word, std::vector<Token>& tokens) {
    if (cache_.append(word, tokens)) return;
    word_.clear();
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t begin = at;
      const Token token = token_of(next_code_point(word, at));
      if (token != kNoToken) {
        word_.push_back(token);
      } else {
        for (const char byte : word.substr(begin, at - begin))
          word_.push_back(rules_.bytes[static_cast<unsigned char>(byte)]);
      }
    }
    merger_.merge(word_);
    cache_.keep(word, word_);
    tokens.insert(tokens.end(), word_.begin(), word_.end());
  }

  Token token_of(char32_t character) const {
    if (character < tokenizer_.ascii_.size()) return tokenizer_.ascii_[character];
    const auto found = tokenizer_.others_.find(character);
    return found == tokenizer_.others_.end() ? kNoToken : found->second;
  }

  const MetaspaceTokenizer& tokenizer_;
  const MetaspaceRules& rules_;
  Merger merger_;
  WordCache cache_;
  std::string normal_;
  std::vector<Token> word_;
};

MetaspaceTokenizer::MetaspaceTokenizer(BpeModel model, std::string serialized)
    : model_(std::move(model)),
      serialized_(std::move(serialized)),
      pairs_(model_.merges),
      plain_(added_tokens(model_, false)),
      normalized_(added_tokens(model_, true)),
      words_meet_(any_merge_has_inner_space(model_)) {
  ascii_.fill(kNoToken);
  for (const auto& [character, token] : rules().characters) {
    if (character < ascii_.size()) {
      ascii_[character] = token;
    } else {
      others_.emplace(character, token);
    }
  }
}

std::unique_ptr<Encoder> MetaspaceTokenizer::encoder() const {
  return std::make_unique<WordEncoder>(*this);
}

void MetaspaceTokenizer::decode(std::span<const Token> tokens, std::string& text) const {
  const bool begins = text.empty();
  for (const Token token : tokens) text += bytes_of(model_, token);
  if (begins && rules().strip && text.starts_with(' ')) text.erase(0, 1);
}

std::optional<Token> MetaspaceTokenizer::find(std::string_view token) const {
  for (const AddedToken& added : model_.added) {
    if (added.text == token) return added.id;
  }
  for (Token id = 0; id < model_.tokens.size(); ++id) {
    if (model_.tokens[id] == token && std::ranges::count(rules().bytes, id) == 0) return id;
  }
  return std::nullopt;
}

std::optional<Token> MetaspaceTokenizer::end_of_document() const {
  return find_end_of_document(*this);
}

}  // namespace lockstep::data
