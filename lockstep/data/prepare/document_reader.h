// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/prepare/byte_stream.h"
#include "lockstep/data/prepare/inputs.h"

namespace lockstep::data {

// Documents are read in pieces, so that one of any length fits into memory.
struct Piece {
  std::string content;           // text, or one line of JSON
  const Input* input = nullptr;  // where it is from
  std::uint64_t place = 0;       // text: offset of its first byte; JSON: number of its line, from 1
  bool begins_document = true;
  bool ends_document = true;
  bool validation = false;  // the whole document is; of JSON its text decides, which the reader does not know
};

// What one worker takes at a time.
struct Chunk {
  std::vector<Piece> pieces;
  std::uint64_t bytes = 0;
  std::uint64_t digest = 0;  // of the content of this chunk and of all before it
};

struct ReaderOptions {
  std::uint64_t document_lines = 0;  // lines of text that make a document; 0: the file is one
  double validation = 0;             // the share of documents for validation: chosen_for_validation()
  // As ByteStream calls it, on the thread that reads.
  std::function<void()> while_reading = {};
};

// Reads inputs one after another; equal inputs give equal chunks. DataError for corrupt files.
class DocumentReader {
 public:
  // `inputs` must outlive the chunks.
  DocumentReader(const std::vector<Input>& inputs, const ReaderOptions& options);
  ~DocumentReader();

  std::optional<Chunk> next();

 private:
  bool open_next();
  bool fill();
  std::optional<Piece> next_piece();
  std::optional<Piece> next_line();
  std::optional<Piece> next_text();
  Piece take(std::size_t bytes, std::uint64_t place);

  const std::vector<Input>& inputs_;
  ReaderOptions options_;
  std::size_t next_input_ = 0;
  std::unique_ptr<ByteStream> stream_;
  std::string buffer_;
  std::size_t begin_ = 0;     // of what is left in the buffer
  bool at_end_ = false;       // of the stream
  std::uint64_t offset_ = 0;  // of begin_ in the input
  std::uint64_t line_ = 0;    // lines taken from the input
  std::uint64_t lines_of_document_ = 0;
  bool within_document_ = false;
  bool validation_ = false;  // of the current document
  std::uint64_t digest_ = 0;
};

// Whether a document is among this share of all. Its text decides, as far as its first MiB goes, line breaks
// at its end left out: duplicates are on the same side, also one that ends its file without a line break.
bool chosen_for_validation(std::string_view document, double share);

// Where a text may be cut without changing its words: at most at its end, and at 1 or more. After a line end
// between two visible ASCII characters, where all pre-tokenizers of splitter.h cut; at a character when there
// is none.
std::size_t safe_cut(std::string_view text);

}  // namespace lockstep::data
