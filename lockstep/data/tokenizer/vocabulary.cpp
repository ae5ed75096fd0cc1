// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/tokenizer/vocabulary.h"

#include <array>

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::data {

bool has_token(const BpeModel& model, Token token) {
  return token < model.tokens.size() && !model.tokens[token].empty();
}

const std::string& bytes_of(const BpeModel& model, Token token) {
  if (!has_token(model, token)) {
    throw DataError(fmt::format("token {} is not in the vocabulary of {}", token, model.tokens.size()));
  }
  return model.tokens[token];
}

std::optional<Token> find_end_of_document(const Tokenizer& tokenizer) {
  constexpr std::array<std::string_view, 4> kNames = {kEndOfText, "<|end_of_text|>", "</s>", "<eos>"};
  for (const std::string_view name : kNames) {
    if (const auto token = tokenizer.find(name)) return token;
  }
  return std::nullopt;
}

}  // namespace lockstep::data
