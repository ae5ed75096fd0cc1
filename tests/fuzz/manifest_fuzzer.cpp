// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/store/manifest.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

namespace {

// Beyond this a plain count of elements would take longer than all else.
constexpr std::size_t kCountable = 10'000;

// Whatever is accepted can be read without further checks.
void require_readable(const checkpoint::Manifest& manifest) {
  for (const checkpoint::ShardFile& file : manifest.files) {
    fuzz::require(file.name.find('/') == file.name.npos && file.name.find("..") == file.name.npos &&
                      file.name.ends_with(".safetensors"),
                  "a file is one of the folder");
  }
  for (const checkpoint::LogicalTensor& tensor : manifest.tensors) {
    const std::size_t elements = tensor.elements();
    if (elements > kCountable) continue;
    std::set<std::size_t> seen;
    for (const checkpoint::ShardFile& file : manifest.files) {
      for (const checkpoint::Piece& piece : file.pieces) {
        if (piece.tensor != tensor.name) continue;
        each_overlap(piece.elements, {0, elements}, [&](std::size_t, std::size_t element, std::size_t count) {
          for (std::size_t i = 0; i < count; ++i) {
            fuzz::require(seen.insert(element + i).second, "an element is in one piece");
          }
        });
      }
    }
    fuzz::require(seen.size() == elements, "every element is in a piece");
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string_view json = input.rest();
  checkpoint::Manifest manifest;
  if (fuzz::accepts<DataError>([&] { manifest = checkpoint::parse_manifest(json, "manifest.json"); })) {
    require_readable(manifest);
    const std::string text = checkpoint::to_json(manifest);
    // Compared as texts, because a loss that is not a number equals nothing.
    fuzz::require(to_json(checkpoint::parse_manifest(text, "manifest.json")) == text,
                  "it goes there and back");
  }
  checkpoint::ShardFile file;
  if (fuzz::accepts<DataError>([&] { file = checkpoint::parse_shard_file(json, "rank-0.json"); })) {
    fuzz::require(checkpoint::parse_shard_file(to_json(file), "rank-0.json") == file, "so does a report");
  }
  return 0;
}
