// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/prepare/saved_progress.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

using namespace lockstep;

namespace {

// The digits of a saved progress, in the order of the file.
std::string text_of(const data::SavedProgress& p) {
  std::string text = "lockstep-prepare-1";
  for (const std::uint64_t number :
       {p.settings, p.chunks, p.digest, p.bytes, p.train.sequences, p.train.documents, p.train.tokens,
        p.validation.sequences, p.validation.documents, p.validation.tokens}) {
    text += " " + std::to_string(number);
  }
  return text + " end\n";
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string_view text = input.rest();
  const fuzz::MemoryFile file(text);
  const auto found = data::load_progress(file.path());
  fuzz::require(!found || text_of(*found) == text, "what is accepted is what was saved");
  return 0;
}
