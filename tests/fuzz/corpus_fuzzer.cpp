// SPDX-License-Identifier: Apache-2.0
//
// The first byte chooses the format, the rest is the file.
#include "lockstep/base/error.h"
#include "lockstep/data/corpus/formats.h"
#include "lockstep/data/corpus/megatron_index.h"
#include "lockstep/data/corpus/token_array.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

using namespace lockstep;

namespace {

void read_index(const std::string& path) {
  const data::MegatronIndex index(path);
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < index.documents(); ++i) {
    const Range document = index.document(i);
    fuzz::require(document.begin == at && document.end >= at, "documents follow each other");
    at = document.end;
  }
  fuzz::require(at == index.tokens(), "documents hold all tokens");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const auto format = input.number<std::uint8_t>() % 3;
  const fuzz::MemoryFile file(input.rest());
  fuzz::accepts<DataError>([&] {
    if (format == 0) return read_index(file.path());
    const auto source =
        format == 1 ? data::open_llmc(file.path(), 50000) : data::open_nanogpt(file.path(), 50000);
    data::verify_tokens(*source);
  });
  return 0;
}
