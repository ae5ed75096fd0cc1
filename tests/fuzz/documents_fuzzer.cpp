// SPDX-License-Identifier: Apache-2.0
//
// Three bytes of settings, then a file of text or of JSON lines, gzip or not.
#include "lockstep/base/error.h"
#include "lockstep/data/prepare/document_reader.h"
#include "lockstep/data/prepare/document_text.h"
#include "lockstep/data/tokenizer/utf8.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const bool json = input.number<std::uint8_t>() % 2 == 1;
  const data::ReaderOptions options{input.number<std::uint8_t>(), input.number<std::uint8_t>() / 256.0};
  const fuzz::MemoryFile file(input.rest());
  const std::vector<data::Input> inputs = {
      {file.path(), json ? data::InputFormat::jsonl : data::InputFormat::text}};
  fuzz::accepts<DataError>([&] {
    data::DocumentReader reader(inputs, options);
    bool open = false;
    while (auto chunk = reader.next()) {
      for (data::Piece& piece : chunk->pieces) {
        open = !piece.ends_document;
        const std::string text = data::text_of(std::move(piece), "text");
        fuzz::require(data::valid_utf8_prefix(text) == text.size(), "documents are valid UTF-8");
      }
    }
    fuzz::require(!open, "the last document ends");
  });
  return 0;
}
