// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/prepare/document_reader.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 20;
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
constexpr std::size_t kChunkBytes = std::size_t{1} << 21;
constexpr std::size_t kMaxLineBytes = std::size_t{1} << 28;

bool is_visible_ascii(char c) {
  return c > ' ' && c < '\x7f';
}

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

}  // namespace

bool chosen_for_validation(std::string_view document, double share) {
  const std::string_view begin = document.substr(0, kPieceBytes);
  std::string hashed(begin.substr(0, begin.find_last_not_of("\r\n") + 1));
  hashed += '\n';  // as most documents of text end
  const std::uint64_t hash = XXH3_64bits(hashed.data(), hashed.size());
  return static_cast<double>(hash >> 11) * 0x1p-53 < share;
}

std::size_t safe_cut(std::string_view text) {
  for (std::size_t at = text.size(); at-- > 2;) {
    if (text[at - 1] == '\n' && is_visible_ascii(text[at]) && is_visible_ascii(text[at - 2])) return at;
  }
  std::size_t at = text.size();
  while (at > 1 && is_continuation(text[at - 1])) --at;
  // The character that begins at at - 1 may go on behind the text.
  return at > 1 ? at - 1 : text.size();
}

DocumentReader::DocumentReader(const std::vector<Input>& inputs, const ReaderOptions& options)
    : inputs_(inputs), options_(options) {}

DocumentReader::~DocumentReader() = default;

bool DocumentReader::open_next() {
  if (next_input_ == inputs_.size()) return false;
  stream_ = std::make_unique<ByteStream>(inputs_[next_input_++].path, options_.while_reading);
  buffer_.clear();
  begin_ = offset_ = line_ = lines_of_document_ = 0;
  at_end_ = within_document_ = false;
  return true;
}

// False at the end of the stream.
bool DocumentReader::fill() {
  if (at_end_) return false;
  buffer_.erase(0, begin_);
  begin_ = 0;
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kReadBytes);
  const std::size_t got = stream_->read(std::span(buffer_).subspan(before));
  buffer_.resize(before + got);
  at_end_ = got < kReadBytes;
  return got > 0;
}

Piece DocumentReader::take(std::size_t bytes, std::uint64_t place) {
  Piece piece;
  piece.content.assign(buffer_, begin_, bytes);
  piece.input = &inputs_[next_input_ - 1];
  piece.place = place;
  begin_ += bytes;
  offset_ += bytes;
  return piece;
}

std::optional<Piece> DocumentReader::next_line() {
  while (true) {
    std::size_t end = buffer_.find('\n', begin_);
    while (end == std::string::npos) {
      const std::size_t searched = buffer_.size() - begin_;
      if (searched > kMaxLineBytes) {
        throw DataError(
            fmt::format("{} line {}: longer than {} bytes", stream_->path(), line_ + 1, kMaxLineBytes));
      }
      if (!fill()) break;
      end = buffer_.find('\n', begin_ + searched);
    }
    if (begin_ == buffer_.size()) return std::nullopt;
    Piece piece = take(std::min(end, buffer_.size() - 1) + 1 - begin_, ++line_);
    if (piece.content.find_first_not_of(" \t\r\n") != std::string::npos) return piece;
  }
}

std::optional<Piece> DocumentReader::next_text() {
  while (buffer_.size() - begin_ < kPieceBytes && fill()) {
  }
  const std::string_view left = std::string_view(buffer_).substr(begin_);
  if (left.empty()) return std::nullopt;
  const std::string_view window = left.substr(0, kPieceBytes);
  std::size_t end = 0;
  std::size_t newline = 0;
  while (options_.document_lines > 0 && lines_of_document_ < options_.document_lines &&
         (newline = window.find('\n', end)) != std::string_view::npos) {
    end = newline + 1;
    ++lines_of_document_;
  }
  const bool enough = options_.document_lines > 0 && lines_of_document_ == options_.document_lines;
  const bool last = at_end_ && left.size() <= kPieceBytes;
  if (!enough) end = last ? window.size() : safe_cut(window);
  // Lines behind a cut are counted again with the next piece.
  if (!enough && !last)
    lines_of_document_ -= static_cast<std::uint64_t>(
        std::count(window.begin() + static_cast<std::ptrdiff_t>(end), window.end(), '\n'));
  Piece piece = take(end, offset_);
  piece.begins_document = !within_document_;
  piece.ends_document = enough || last;
  // A piece that the document goes on behind has been cut by what stands around the cut.
  if (piece.begins_document) {
    validation_ =
        chosen_for_validation(piece.ends_document ? window.substr(0, end) : window, options_.validation);
  }
  piece.validation = validation_;
  within_document_ = !piece.ends_document;
  if (piece.ends_document) lines_of_document_ = 0;
  return piece;
}

std::optional<Piece> DocumentReader::next_piece() {
  while (true) {
    if (stream_) {
      auto piece = inputs_[next_input_ - 1].format == InputFormat::jsonl ? next_line() : next_text();
      if (piece) return piece;
    }
    if (!open_next()) return std::nullopt;
  }
}

std::optional<Chunk> DocumentReader::next() {
  Chunk chunk;
  while (chunk.bytes < kChunkBytes) {
    auto piece = next_piece();
    if (!piece) break;
    chunk.bytes += piece->content.size();
    digest_ = XXH3_64bits_withSeed(piece->content.data(), piece->content.size(),
                                   digest_ * 2 + piece->ends_document);
    chunk.pieces.push_back(std::move(*piece));
  }
  if (chunk.pieces.empty()) return std::nullopt;
  chunk.digest = digest_;
  return chunk;
}

}  // namespace lockstep::data
