// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/hugging_face/weight_index.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string_view json = input.rest();
  std::set<std::string> files;
  if (!fuzz::accepts<DataError>([&] { files = checkpoint::files_of_index(json, "index.json"); })) return 0;
  fuzz::require(!files.empty(), "an index names a file");
  for (const std::string& file : files) {
    fuzz::require(file.find('/') == file.npos && std::strlen(file.c_str()) == file.size() &&
                      file.ends_with(".safetensors"),
                  "a file is one of the folder");
  }
  return 0;
}
