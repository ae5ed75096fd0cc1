// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/corpus/megatron_writer.h"

#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/mapped_file.h"
#include "lockstep/data/corpus/megatron_index.h"

namespace lockstep::data {
namespace {

// What PREFIX.idx.partial holds: enough to make the three arrays of the index in three passes, in constant
// memory.
struct Entry {
  std::int32_t length;
  std::int32_t ends_document;
};

template <typename T>
void put(OutputFile& file, T value) {
  file.write(as_bytes_of(value));
}

template <typename Stored>
void narrow(std::span<const Token> tokens, OutputFile& file) {
  std::vector<Stored> stored(tokens.begin(), tokens.end());
  file.write(std::as_bytes(std::span(stored)));
}

// Divided, because a product with a number from a file may not fit into 64 bits.
bool holds(const std::string& path, std::uint64_t count, std::size_t size) {
  std::error_code missing;
  const std::uintmax_t bytes = std::filesystem::file_size(path, missing);
  return !missing && bytes / size >= count;
}

class Entries {
 public:
  explicit Entries(const std::string& path) : file_(path) {}

  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (std::size_t at = 0; at < file_.size(); at += sizeof(Entry)) {
      Entry entry;
      std::memcpy(&entry, file_.bytes().data() + at, sizeof entry);
      visit(entry);
    }
  }

 private:
  MappedFile file_;
};

}  // namespace

bool MegatronWriter::can_go_on(const std::string& prefix, TokenType type, const Mark& from) {
  return holds(prefix + ".bin.partial", from.tokens, size_of(type)) &&
         holds(prefix + ".idx.partial", from.sequences, sizeof(Entry));
}

MegatronWriter::MegatronWriter(std::string prefix, TokenType type, const Mark& from)
    : prefix_(std::move(prefix)),
      type_(type),
      mark_(from),
      tokens_(prefix_ + ".bin.partial", from.tokens * size_of(type)),
      sequences_(prefix_ + ".idx.partial", from.sequences * sizeof(Entry)) {
  LOCKSTEP_CHECK(type == TokenType::uint16 || type == TokenType::int32,
                 "a type that this writer does not write");
}

void MegatronWriter::add(std::span<const Token> tokens, bool ends_document) {
  LOCKSTEP_CHECK(tokens.size() <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()));
  if (type_ == TokenType::uint16) {
    narrow<std::uint16_t>(tokens, tokens_);
  } else {
    narrow<std::int32_t>(tokens, tokens_);
  }
  put(sequences_, Entry{static_cast<std::int32_t>(tokens.size()), ends_document});
  document_closed_ = ends_document;
  mark_.sequences += 1;
  mark_.documents += ends_document;
  mark_.tokens += tokens.size();
}

void MegatronWriter::save() {
  tokens_.sync();
  sequences_.sync();
}

void MegatronWriter::write_index() {
  const Entries entries(prefix_ + ".idx.partial");
  OutputFile& index = index_.emplace(prefix_ + ".idx.new");
  index.write(std::string_view(kMegatronMagic, sizeof kMegatronMagic));
  put(index, std::uint64_t{1});
  put(index, static_cast<std::uint8_t>(type_));
  put(index, mark_.sequences);
  put(index, mark_.documents + 1);
  entries.for_each([&](Entry entry) { put(index, entry.length); });
  std::int64_t offset = 0;
  entries.for_each([&](Entry entry) {
    put(index, offset);
    offset += entry.length * static_cast<std::int64_t>(size_of(type_));
  });
  std::int64_t sequence = 0;
  put(index, sequence);
  entries.for_each([&](Entry entry) {
    ++sequence;
    if (entry.ends_document != 0) put(index, sequence);
  });
  index.sync();
}

void MegatronWriter::complete() {
  LOCKSTEP_CHECK(document_closed_, "the last document was not closed");
  save();
  write_index();
}

void MegatronWriter::publish() {
  LOCKSTEP_CHECK(index_.has_value(), "the pair was not completed");
  // The index comes last: whoever sees it finds the tokens it describes.
  std::error_code was_not_there;
  std::filesystem::remove(prefix_ + ".idx", was_not_there);
  tokens_.rename_to(prefix_ + ".bin");
  index_->rename_to(prefix_ + ".idx");
  std::filesystem::remove(prefix_ + ".idx.partial", was_not_there);
}

void MegatronWriter::discard() const {
  std::error_code was_not_there;
  for (const char* name : {".bin.partial", ".idx.partial"}) {
    std::filesystem::remove(prefix_ + name, was_not_there);
  }
}

}  // namespace lockstep::data
