// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/data/corpus/megatron_writer.h"

namespace lockstep::data {

// How far a run of prepare_corpus() has come.
struct SavedProgress {
  std::uint64_t settings = 0;  // hash of all that decides what is written, except the inputs
  std::uint64_t chunks = 0;    // of the inputs that are done
  std::uint64_t digest = 0;    // of the last of them: Chunk::digest
  std::uint64_t bytes = 0;     // of text in them
  MegatronWriter::Mark train, validation;
  bool operator==(const SavedProgress&) const = default;
};

void save_progress(const std::string& path, const SavedProgress& progress);

// None when there is no such file or it is not what save_progress() writes: then nothing was done.
std::optional<SavedProgress> load_progress(const std::string& path);

}  // namespace lockstep::data
