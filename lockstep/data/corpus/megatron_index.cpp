// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/corpus/megatron_index.h"

#include <cstring>

#include <fmt/format.h>

#include "lockstep/data/corpus/bad_file.h"

namespace lockstep::data {
namespace {

bool is_token_type(std::uint8_t code) {
  return (code >= 1 && code <= 5) || code == 8;
}

}  // namespace

MegatronIndex::MegatronIndex(const std::string& path) : file_(path) {
  read_header();
  check_sequences();
  check_documents();
}

// The arrays follow a header of 34 bytes and are therefore unaligned.
template <typename T>
T MegatronIndex::at(std::uint64_t offset) const {
  T value;
  std::memcpy(&value, file_.bytes().data() + offset, sizeof(T));
  return value;
}

std::uint64_t MegatronIndex::pointer_offset(std::uint64_t sequence) const {
  return kMegatronHeaderBytes + 4 * sequences_ + 8 * sequence;
}

std::uint64_t MegatronIndex::document_offset(std::uint64_t entry) const {
  return pointer_offset(sequences_) + 8 * entry;
}

void MegatronIndex::read_header() {
  if (file_.size() < kMegatronHeaderBytes) {
    bad_file(path(), file_.size(),
             fmt::format("the file ends within its header of {} bytes", kMegatronHeaderBytes));
  }
  if (std::memcmp(file_.bytes().data(), kMegatronMagic, sizeof kMegatronMagic) != 0) {
    bad_file(path(), 0, "this is no Megatron index, which begins with MMIDIDX");
  }
  const auto version = at<std::uint64_t>(9);
  if (version != 1) bad_file(path(), 9, fmt::format("version {} is not known, only 1", version));
  const auto code = at<std::uint8_t>(17);
  if (!is_token_type(code)) bad_file(path(), 17, fmt::format("{} is no code of an integer type", code));
  type_ = static_cast<TokenType>(code);
  sequences_ = at<std::uint64_t>(18);
  document_entries_ = at<std::uint64_t>(26);

  // Each count alone is bounded by the file first, so that the sum below cannot overflow.
  const std::uint64_t size = file_.size();
  if (sequences_ > size / 12 || document_entries_ > size / 8 || document_offset(document_entries_) > size) {
    bad_file(path(), 18,
             fmt::format("{} sequences and {} document entries do not fit into {} bytes", sequences_,
                         document_entries_, size));
  }
  if (document_entries_ == 0) bad_file(path(), 26, "the list of documents is empty; it begins with a 0");
  const std::uint64_t end = document_offset(document_entries_);
  if (size != end && size != end + sequences_) {
    bad_file(path(), end, fmt::format("{} bytes follow the end of the index", size - end));
  }
}

void MegatronIndex::check_sequences() {
  const std::uint64_t width = size_of(type_);
  for (std::uint64_t i = 0; i < sequences_; ++i) {
    const auto length = at<std::int32_t>(kMegatronHeaderBytes + 4 * i);
    if (length < 0)
      bad_file(path(), kMegatronHeaderBytes + 4 * i, fmt::format("sequence {} has length {}", i, length));
    const auto pointer = at<std::int64_t>(pointer_offset(i));
    if (static_cast<std::uint64_t>(pointer) != tokens_ * width) {
      bad_file(path(), pointer_offset(i),
               fmt::format("sequence {} is said to begin at byte {}, but the ones before end at {}", i,
                           pointer, tokens_ * width));
    }
    tokens_ += static_cast<std::uint64_t>(length);
  }
}

void MegatronIndex::check_documents() const {
  std::int64_t before = 0;
  for (std::uint64_t i = 0; i < document_entries_; ++i) {
    const auto first = at<std::int64_t>(document_offset(i));
    const bool last = i + 1 == document_entries_;
    if (first < before || static_cast<std::uint64_t>(first) > sequences_ || (i == 0 && first != 0) ||
        (last && static_cast<std::uint64_t>(first) != sequences_)) {
      bad_file(path(), document_offset(i),
               fmt::format("document entry {} is {}, after {}; the entries rise from 0 to the {} sequences",
                           i, first, before, sequences_));
    }
    before = first;
  }
}

Range MegatronIndex::document(std::uint64_t index) const {
  const auto token_of = [&](std::uint64_t entry) {
    const auto sequence = static_cast<std::uint64_t>(at<std::int64_t>(document_offset(entry)));
    return sequence == sequences_
               ? tokens_
               : static_cast<std::uint64_t>(at<std::int64_t>(pointer_offset(sequence))) / size_of(type_);
  };
  return {token_of(index), token_of(index + 1)};
}

}  // namespace lockstep::data
