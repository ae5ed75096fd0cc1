// SPDX-License-Identifier: Apache-2.0
//
// A model as a folder that Hugging Face's transformers and most other programs open: config.json,
// generation_config.json, tokenizer.json with its companions, and the weights in model.safetensors or, above
// a size, in numbered files with model.safetensors.index.json.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/checkpoint/hugging_face/config.h"
#include "lockstep/checkpoint/hugging_face/folder_tokenizer.h"
#include "lockstep/checkpoint/safetensors/file.h"

namespace lockstep::checkpoint {

inline constexpr std::uint64_t kMaxShardBytes = 5'000'000'000;

// UsageError when there is something at `path` that is no such folder: replacing it would remove what others
// have put there.
void require_replaceable(const std::string& path);

// Replaces the folder as a whole: whoever opens it finds all of the old model or all of the new one, also
// after a crash. Companions of the tokenizer are written as they are. UsageError when something cannot be
// written, and as above; nothing is left of a new one that is not whole.
void save_folder(const std::string& path, const FolderConfig& config, std::vector<OutgoingTensor> tensors,
                 const FolderTokenizer& tokenizer, std::uint64_t max_shard_bytes = kMaxShardBytes);

// Which tensors go into which file: in their order, no file above the limit unless it has one tensor only.
std::vector<std::vector<OutgoingTensor>> shards_of(std::vector<OutgoingTensor> tensors,
                                                   std::uint64_t max_bytes);

class ModelFolder {
 public:
  // Reads and checks everything but the values. UsageError when a file is missing, naming the folder that was
  // probably meant, or the model is not one of ours; DataError when a file is corrupt.
  explicit ModelFolder(const std::string& path);

  struct Found {
    const SafetensorsFile* file = nullptr;
    const StoredTensor* tensor = nullptr;
  };

  const std::string& path() const { return path_; }
  const FolderConfig& config() const { return config_; }
  // Both null when there is no such tensor.
  Found find(std::string_view name) const;
  std::vector<std::string> names() const;
  std::uint64_t bytes() const;  // of all tensors

 private:
  std::string path_;
  FolderConfig config_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
};

}  // namespace lockstep::checkpoint
