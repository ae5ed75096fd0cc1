// SPDX-License-Identifier: Apache-2.0
//
// The .idx file of a Megatron corpus, little-endian:
//   "MMIDIDX\0\0" | u64 version = 1 | u8 token type | u64 sequences | u64 documents + 1
//   i32 lengths[sequences] | i64 byte offsets[sequences] | i64 first sequence of each document, then
//   sequences
// and perhaps i8 modes[sequences]. A document is a run of sequences; the .bin file holds their tokens and
// nothing else.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/base/mapped_file.h"
#include "lockstep/data/corpus/token_type.h"
#include "lockstep/mesh/range.h"

namespace lockstep::data {

inline constexpr char kMegatronMagic[] = "MMIDIDX\0";  // nine bytes with the final zero
inline constexpr std::uint64_t kMegatronHeaderBytes = 34;

class MegatronIndex {
 public:
  // Checks every entry. DataError naming file and offset for whatever breaks the format.
  explicit MegatronIndex(const std::string& path);

  const std::string& path() const { return file_.path(); }
  TokenType type() const { return type_; }
  std::uint64_t tokens() const { return tokens_; }
  std::uint64_t sequences() const { return sequences_; }
  std::uint64_t documents() const { return document_entries_ - 1; }
  // The tokens of a document in the stream of all tokens.
  Range document(std::uint64_t index) const;

 private:
  template <typename T>
  T at(std::uint64_t offset) const;
  std::uint64_t pointer_offset(std::uint64_t sequence) const;
  std::uint64_t document_offset(std::uint64_t entry) const;
  void read_header();
  void check_sequences();
  void check_documents() const;

  MappedFile file_;
  TokenType type_ = TokenType::uint16;
  std::uint64_t sequences_ = 0;
  std::uint64_t document_entries_ = 0;
  std::uint64_t tokens_ = 0;
};

}  // namespace lockstep::data
