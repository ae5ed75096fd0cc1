// SPDX-License-Identifier: Apache-2.0
//
// What names and small files of a folder of checkpoints say.
#include "lockstep/base/hash.h"
#include "lockstep/checkpoint/store/commit_file.h"
#include "lockstep/checkpoint/store/folder_name.h"

#include "tests/fuzz/fuzz.h"

using namespace lockstep;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::string_view text = input.rest();
  if (const auto name = checkpoint::parse_folder_name(text)) {
    fuzz::require(checkpoint::to_text(*name) == text, "a folder has one name");
    fuzz::require(text.find('/') == text.npos && text.find("..") == text.npos, "it is in its store");
    fuzz::require(name->step >= 0, "no step is negative");
  }
  if (const auto hash = checkpoint::parse_commit(text)) {
    fuzz::require(checkpoint::commit_text(*hash) == text, "a commit has one text");
  }
  if (const auto hash = parse_hash(text)) {
    fuzz::require(to_text(*hash) == text, "a hash has one text");
  }
  return 0;
}
