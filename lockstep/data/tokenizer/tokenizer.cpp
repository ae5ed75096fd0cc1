// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/tokenizer/tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include <fmt/format.h>

#include "lockstep/base/error.h"
#include "lockstep/base/mapped_file.h"
#include "lockstep/data/tokenizer/bpe_tokenizer.h"
#include "lockstep/data/tokenizer/file_content.h"
#include "lockstep/data/tokenizer/hugging_face.h"
#include "lockstep/data/tokenizer/metaspace_tokenizer.h"

namespace lockstep::data {

std::string tokenizer_content(const std::string& path) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 28;
  const MappedFile file(path);
  if (file.size() > kMaxBytes)
    throw DataError(fmt::format("{}: {} bytes are too many for a tokenizer", path, file.size()));
  return {reinterpret_cast<const char*>(file.bytes().data()), file.size()};
}

bool has_content(const std::string& path, std::string_view content) {
  try {
    return std::ranges::equal(MappedFile(path).bytes(), std::as_bytes(std::span(content)));
  } catch (const UsageError&) {
    return false;
  }
}

std::vector<Token> Tokenizer::encode(std::string_view text) const {
  std::vector<Token> tokens;
  encoder()->encode(text, tokens);
  return tokens;
}

std::string Tokenizer::decode(std::span<const Token> tokens) const {
  std::string text;
  decode(tokens, text);
  return text;
}

std::unique_ptr<Tokenizer> make_tokenizer(BpeModel model, std::string serialized) {
  if (model.metaspace) return std::make_unique<MetaspaceTokenizer>(std::move(model), std::move(serialized));
  return std::make_unique<BpeTokenizer>(std::move(model), std::move(serialized));
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& name) {
  if (name == "bytes") return std::make_unique<BpeTokenizer>(byte_model());
  std::error_code ignored;
  if (std::filesystem::is_directory(name, ignored)) {
    const std::filesystem::path folder = name;
    const bool has_other =
        !std::filesystem::exists(folder / kTokenizerFile) && std::filesystem::exists(folder / kPieceFile);
    return load_tokenizer((folder / (has_other ? kPieceFile : kTokenizerFile)).string());
  }
  if (name.ends_with(".model")) {
    throw UsageError(fmt::format(
        "{}: only `lockstep prepare` reads sentencepiece models; everything else needs a tokenizer.json",
        name));
  }
  const std::string content = tokenizer_content(name);
  return make_tokenizer(from_hugging_face(content, name), content);
}

}  // namespace lockstep::data
