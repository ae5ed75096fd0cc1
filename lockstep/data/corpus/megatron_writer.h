// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "lockstep/base/output_file.h"
#include "lockstep/data/corpus/token_source.h"
#include "lockstep/data/corpus/token_type.h"

namespace lockstep::data {

// Writes PREFIX.bin and PREFIX.idx (megatron_index.h). Until finish() everything stands in PREFIX.bin.partial
// and PREFIX.idx.partial, so that the pair appears complete or not at all, and an interrupted writer can go
// on.
class MegatronWriter {
 public:
  // How much has been written.
  struct Mark {
    std::uint64_t sequences = 0;
    std::uint64_t documents = 0;
    std::uint64_t tokens = 0;
    bool operator==(const Mark&) const = default;
  };

  // Whether the partial files hold what the mark says.
  static bool can_go_on(const std::string& prefix, TokenType type, const Mark& from);

  // Begins anew, or goes on from a mark that an earlier writer of the same files and type has saved, the
  // document there being closed or not. UsageError when files cannot be written or hold less than the mark
  // says.
  MegatronWriter(std::string prefix, TokenType type, const Mark& from);
  MegatronWriter(std::string prefix, TokenType type) : MegatronWriter(std::move(prefix), type, Mark{}) {}

  // Appends one sequence to the current document; `ends_document` closes it. Tokens must fit the type.
  void add(std::span<const Token> tokens, bool ends_document);

  const Mark& mark() const { return mark_; }
  void save();  // everything up to mark() is on the disk when this returns
  // Puts all that publish() needs on the disk; the last document must have been closed, and nothing is added
  // after. A pair that was there before stays.
  void complete();
  // Makes the completed pair visible by renames, the index last, and removes what is partial. A pair that was
  // there before is replaced.
  void publish();
  void finish() { complete(), publish(); }
  void discard() const;  // removes what is partial; nothing is written after

 private:
  void write_index();

  std::string prefix_;
  TokenType type_;
  Mark mark_;
  bool document_closed_ = true;
  OutputFile tokens_;
  OutputFile sequences_;  // one Entry for each sequence
  std::optional<OutputFile> index_;
};

}  // namespace lockstep::data
