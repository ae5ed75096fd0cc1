// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/corpus/formats.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "lockstep/base/mapped_file.h"
#include "lockstep/data/corpus/bad_file.h"
#include "lockstep/data/corpus/megatron_index.h"
#include "lockstep/data/corpus/token_array.h"

namespace lockstep::data {
namespace {

constexpr std::uint64_t kLlmcHeaderBytes = 1024;
constexpr std::int32_t kLlmcGpt2Magic = 20240520;
constexpr std::int32_t kLlmcLlama3Magic = 20240801;

std::int32_t header_word(const MappedFile& file, std::size_t index) {
  std::int32_t word = 0;
  if (file.size() >= 4 * (index + 1)) std::memcpy(&word, file.bytes().data() + 4 * index, sizeof word);
  return word;
}

bool has_llmc_magic(const MappedFile& file) {
  return header_word(file, 0) == kLlmcGpt2Magic || header_word(file, 0) == kLlmcLlama3Magic;
}

}  // namespace

std::unique_ptr<TokenSource> open_megatron(const std::string& prefix, std::uint64_t vocab_size) {
  const MegatronIndex index(prefix + ".idx");
  MappedFile tokens(prefix + ".bin");
  const std::uint64_t expected = index.tokens() * size_of(index.type());
  if (tokens.size() != expected) {
    bad_file(tokens.path(), tokens.size(),
             fmt::format("the file ends here, but its index {} describes {} bytes", index.path(), expected));
  }
  return std::make_unique<TokenArray>(std::move(tokens), 0, index.type(), vocab_size);
}

std::unique_ptr<TokenSource> open_llmc(const std::string& path, std::uint64_t vocab_size) {
  MappedFile file(path);
  if (!has_llmc_magic(file))
    bad_file(path, 0, fmt::format("{} is no magic number of an llm.c corpus", header_word(file, 0)));
  const bool gpt2 = header_word(file, 0) == kLlmcGpt2Magic;
  const std::int32_t version = header_word(file, 1);
  if (version != (gpt2 ? 1 : 7))
    bad_file(path, 4, fmt::format("version {} does not fit the magic number", version));
  const TokenType type = gpt2 ? TokenType::uint16 : TokenType::uint32;
  const std::int32_t tokens = header_word(file, 2);
  if (tokens < 0) bad_file(path, 8, fmt::format("the number of tokens is {}", tokens));
  const std::uint64_t expected = kLlmcHeaderBytes + static_cast<std::uint64_t>(tokens) * size_of(type);
  if (file.size() != expected) {
    bad_file(path, file.size(),
             fmt::format("the file ends here, but its header describes {} bytes", expected));
  }
  return std::make_unique<TokenArray>(std::move(file), kLlmcHeaderBytes, type, vocab_size);
}

bool is_llmc(const std::string& path) {
  return has_llmc_magic(MappedFile(path));
}

std::unique_ptr<TokenSource> open_nanogpt(const std::string& path, std::uint64_t vocab_size) {
  return std::make_unique<TokenArray>(MappedFile(path), 0, TokenType::uint16, vocab_size);
}

}  // namespace lockstep::data
