// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/error.h"
#include "lockstep/checkpoint/safetensors/header.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

// The length is made here, so that the fuzzer need not guess it: a first line of JSON, then data.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string_view header = input.line();
  const std::uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof(length));
  file += header;
  file += input.rest();
  checkpoint::SafetensorsHeader found;
  if (!fuzz::accepts<DataError>(
          [&] { found = checkpoint::parse_safetensors(std::as_bytes(std::span(file)), "f"); })) {
    return 0;
  }
  std::uint64_t bytes = 0;
  for (const auto& [name, tensor] : found.tensors) {
    fuzz::require(sizeof(length) + header.size() <= tensor.begin && tensor.begin <= tensor.end &&
                      tensor.end <= file.size(),
                  "a tensor lies within the data");
    bytes += tensor.end - tensor.begin;
  }
  fuzz::require(sizeof(length) + header.size() + bytes == file.size(), "every byte has one tensor");
  return 0;
}
