// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/sentencepiece/tokenizer.h"

#include <exception>

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include "lockstep/base/error.h"
#include "lockstep/data/tokenizer/file_content.h"
#include "lockstep/data/tokenizer/utf8.h"

namespace lockstep::data {
namespace {

using Processor = sentencepiece::SentencePieceProcessor;

class PieceEncoder : public Encoder {
 public:
  explicit PieceEncoder(const Processor& processor) : processor_(processor) {}

  void encode(std::string_view text, std::vector<Token>& tokens) override {
    require_valid_utf8(text);
    const auto status = processor_.Encode({text.data(), text.size()}, &ids_);
    if (!status.ok())
      throw DataError(fmt::format("sentencepiece cannot encode the text: {}", status.ToString()));
    tokens.insert(tokens.end(), ids_.begin(), ids_.end());
  }

 private:
  const Processor& processor_;
  std::vector<int> ids_;
};

// Without what says only where the library noticed it.
std::string in_words(const std::string& why) {
  return why.find(".cc(") == std::string::npos ? ": " + why : "";
}

class SentencePieceTokenizer : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(const std::string& path) : model_(tokenizer_content(path)) {
    if (const std::string why = load(); !why.empty()) {
      throw DataError(fmt::format("{} is no sentencepiece model{}", path, in_words(why)));
    }
  }

  std::uint64_t vocab_size() const override { return static_cast<std::uint64_t>(processor_.GetPieceSize()); }
  bool has(Token token) const override { return token < vocab_size(); }
  std::unique_ptr<Encoder> encoder() const override { return std::make_unique<PieceEncoder>(processor_); }

  void decode(std::span<const Token> tokens, std::string& text) const override {
    std::vector<int> ids;
    for (const Token token : tokens) {
      if (!has(token)) {
        throw DataError(fmt::format("token {} is not in the vocabulary of {}", token, vocab_size()));
      }
      ids.push_back(static_cast<int>(token));
    }
    std::string decoded;
    const auto status = processor_.Decode(ids, &decoded);
    if (!status.ok())
      throw DataError(fmt::format("sentencepiece cannot decode the tokens: {}", status.ToString()));
    text += decoded;
  }

  std::optional<Token> find(std::string_view token) const override {
    const int id = processor_.PieceToId({token.data(), token.size()});
    const bool unknown = id < 0 || (id == processor_.unk_id() && processor_.IdToPiece(id) != token);
    return unknown ? std::nullopt : std::optional(static_cast<Token>(id));
  }

  std::optional<Token> end_of_document() const override {
    return processor_.eos_id() < 0 ? std::nullopt : std::optional(static_cast<Token>(processor_.eos_id()));
  }

  std::string serialized() const override { return model_; }

 private:
  // Why it cannot be, or nothing. The library returns most of its errors, but its tree of pieces throws.
  std::string load() {
    try {
      const auto status = processor_.LoadFromSerializedProto(model_);
      return status.ok() ? "" : status.ToString();
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  std::string model_;
  Processor processor_;
};

}  // namespace

std::unique_ptr<Tokenizer> load_sentencepiece(const std::string& path) {
  return std::make_unique<SentencePieceTokenizer>(path);
}

}  // namespace lockstep::data
